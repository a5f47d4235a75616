"""Dynamic loss scaling for float16."""


class LossScale:
    """The factor by which losses are multiplied so that float16 gradients do not vanish, found by trying.

    It is halved at every step whose gradient is not finite, and doubled after `interval` steps in a row whose gradient is; the
    scheme of "Mixed Precision Training" (Micikevicius et al., 2018, section 3.2).

    Args:
        value: the first factor.
        interval: steps.
    """

    def __init__(self, value: float = 2.0**16, interval: int = 2000):
        self.value = value
        self.interval = interval
        self.good_steps = 0

    def update(self, finite: bool) -> None:
        """After each step: whether its gradient was finite."""
        if not finite:
            # Never below what is normal in float32, so that dividing by it stays exact.
            self.value = max(self.value / 2, 2.0**-100)
            self.good_steps = 0
            return
        self.good_steps += 1
        if self.good_steps == self.interval:
            self.value = min(self.value * 2, 2.0**100)
            self.good_steps = 0

    def state_dict(self) -> dict[str, float]:
        """What a checkpoint has to hold."""
        return {"value": self.value, "good_steps": self.good_steps}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from `state`."""
        self.value, self.good_steps = float(state["value"]), int(state["good_steps"])
