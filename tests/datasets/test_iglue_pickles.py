"""Pickles of arrays are read, whoever wrote them; what is in them is never run."""

import collections
import os
import pickle
import random

import numpy as np
import pytest

from tests.datasets.recipes import recipe_module

pickles = recipe_module("iglue.pickles")

ARRAYS = {
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "big-endian": np.arange(6, dtype=">f8"),
    "columns first": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "bytes": np.arange(6, dtype=np.uint8),
    "empty": np.zeros((0, 4), np.float32),
    "truth": np.array([True, False]),
    "scalar": np.float32(2.5),
}
CONTAINERS = [1, (2.5, None, "ä", b"\xff"), {3}, frozenset({4}), {"c": True}]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_every_protocol(kind, protocol):
    data = pickle.dumps({"a": ARRAYS[kind], "b": CONTAINERS}, protocol=protocol)
    if protocol < 4:
        data = data.replace(b"numpy._core", b"numpy.core")  # as numpy 1 wrote them
    found = pickles.loads(data)
    array = pickles.array(found["a"])
    assert (array.dtype, array.shape) == (ARRAYS[kind].dtype, ARRAYS[kind].shape)
    assert np.array_equal(array, ARRAYS[kind])
    assert found["b"] == CONTAINERS
    assert pickles.array(found["b"]) is None


def test_an_array_that_python_2_wrote():
    raw = bytes(range(256))
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    data = b"\x80\x02" + made + b"(K\x01M\x00\x01\x85" + dtype + b"\x89T\x00\x01\x00\x00" + raw + b"tb."
    assert bytes(pickles.array(pickles.loads(data))) == raw


class Calls:
    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Calls(os.system, "true"), "(posix|nt).system"),
        (Calls(eval, "1"), "(builtins|__builtin__).eval"),
        (Calls(np.load, "x"), "numpy.*load"),
        (collections.OrderedDict(), "collections.OrderedDict"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_everything_else_is_refused(value, name, protocol):
    data = pickle.dumps({"a": [value]}, protocol=protocol)
    with pytest.raises(pickles.PickleRefused, match=rf"its pickle asks for {name}; only arrays"):
        pickles.loads(data)


@pytest.mark.parametrize(
    "data",
    [
        b"cnumpy\nndarray\n}(X\x04\x00\x00\x00nameX\x01\x00\x00\x00xub.",  # a state for a stand-in
        b"cnumpy\nndarray\n(NtR.",
        b"(cnumpy\ndtype\no.",
        b"cnumpy\nndarray\n)\x81.",
        b"\x82\x01.",
        b"Nr\xff\xff\xff\x7f.",  # "remember None under number 2147483647"
        b"Pname\n.",
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00hextR.",
        b"",
    ],
)
def test_odd_programs_do_nothing(data):
    try:
        found = pickles.loads(data)
    except pickles.PickleError:
        found = None
    assert found is None or pickles.array(found) is None
    assert np.array_equal(pickles.array(pickles.loads(pickle.dumps(ARRAYS["float32"]))), ARRAYS["float32"])


def test_a_stand_in_cannot_be_changed_for_the_next_reading():
    program = b"cnumpy\ndtype\nN}X\x04\x00\x00\x00nameX\x07\x00\x00\x00ndarrays\x86b."  # dtype.name = "ndarray"
    assert pickles.loads(program).name == "ndarray"
    assert np.array_equal(pickles.array(pickles.loads(pickle.dumps(ARRAYS["float32"]))), ARRAYS["float32"])


def test_objects_are_not_made_into_arrays():
    found = pickles.loads(pickle.dumps({"a": np.array([{}, "x"], dtype=object), "b": np.array(["text"]), "c": np.zeros(2, "M8[s]")}))
    for value in found.values():
        with pytest.raises(pickles.PickleError, match="not of numbers"):
            pickles.array(value)


def test_damaged_pickles_lead_to_one_kind_of_error():
    data = pickle.dumps({"a": np.arange(20, dtype=np.float32), "b": np.int64(3), "c": [b"x", "y"]}, protocol=4)
    draw = random.Random(0)
    read = 0
    for _ in range(3000):
        changed = bytearray(data[: draw.randrange(1, len(data) + 1)] if draw.random() < 0.3 else data)
        for _ in range(draw.randrange(1, 4)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        try:
            found = pickles.loads(bytes(changed))
            if isinstance(found, dict):
                [pickles.array(value) for value in found.values()]
            read += 1
        except pickles.PickleError:
            pass
    assert 0 < read < 3000
