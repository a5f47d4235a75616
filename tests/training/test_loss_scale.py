from raysys.training.loss_scale import LossScale


def test_halves_at_once_and_doubles_after_an_interval_without_a_fault():
    scale = LossScale(8.0, interval=3)
    seen = []
    for finite in [False, True, True, False, True, True, True, True, True, True]:
        scale.update(finite)
        seen.append(scale.value)
    assert seen == [4, 4, 4, 2, 2, 2, 4, 4, 4, 8]


def test_stays_a_power_of_two_that_float32_can_divide_by():
    scale = LossScale(1.0, interval=1)
    for finite, limit in ((False, 2.0**-100), (True, 2.0**100)):
        for _ in range(300):
            scale.update(finite)
        assert scale.value == limit


def test_goes_on_where_it_was():
    scale = LossScale(8.0, interval=3)
    for finite in (False, True, True):
        scale.update(finite)
    other = LossScale(interval=3)
    other.load_state_dict(scale.state_dict())
    other.update(True)
    assert (other.value, other.good_steps) == (8.0, 0)
