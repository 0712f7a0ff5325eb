import numpy as np
import pytest

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.membership.exact.encode import encode
from splitmeans.membership.exact.estimate import ExactEstimator
from splitmeans.membership.exact.law import PlainLabels
from splitmeans.privacy.events import NonPrivateEvent
from splitmeans.wire.messages import PlainLabelsMessage


def message(*labels: int) -> PlainLabelsMessage:
    return encode(PlainLabels(), labels=np.array(labels, dtype=np.int32))


def test_event_says_there_is_no_privacy():
    assert PlainLabels().event == NonPrivateEvent(reason="every user's cluster is sent as it is")


def test_labels_travel_as_bytes():
    sent = message(0, 254, 3)
    assert sent.labels.dtype == np.uint8
    assert sent.labels.tolist() == [0, 254, 3]


@pytest.mark.parametrize("label", [-1, 255, 1000])
def test_labels_that_do_not_fit_are_refused(label):
    with pytest.raises(ParameterError, match="labels must be between 0 and 254"):
        message(0, label)


def test_cells_by_hand():
    estimator = ExactEstimator(
        messages=(message(0, 1, 1, 0), message(2, 0, 0, 2)), n_local_clusters=(2, 3)
    )
    assert estimator.n_users == 4
    assert estimator.one(0).tolist() == [2, 2]
    assert estimator.one(1).tolist() == [2, 0, 2]
    assert estimator.joint([0, 1]).tolist() == [[0, 0, 2], [2, 0, 0]]


def test_all_255_clusters_are_counted():
    every = message(*range(255))
    estimator = ExactEstimator(messages=(every, every), n_local_clusters=(255, 255))
    np.testing.assert_array_equal(estimator.joint([0, 1]), np.eye(255))


def test_no_users():
    estimator = ExactEstimator(messages=(message(), message()), n_local_clusters=(2, 3))
    np.testing.assert_array_equal(estimator.joint([0, 1]), np.zeros((2, 3)))


def test_messages_of_different_length_are_refused():
    with pytest.raises(ProtocolError, match="party 1 sent 2 labels where party 0 sent 3"):
        ExactEstimator(messages=(message(0, 0, 1), message(0, 1)), n_local_clusters=(2, 2))


def test_label_outside_the_clusters_is_refused():
    with pytest.raises(ProtocolError, match="labels of party 1 must be below its 2"):
        ExactEstimator(messages=(message(0), message(2)), n_local_clusters=(2, 2))


@pytest.mark.parametrize(
    "labels", [np.zeros(3, dtype=np.int64), np.zeros((3, 1), dtype=np.uint8)], ids=["type", "shape"]
)
def test_malformed_labels_are_refused(labels):
    with pytest.raises(ProtocolError, match="labels of party 0 must be a list of bytes"):
        ExactEstimator(messages=(PlainLabelsMessage(labels=labels),), n_local_clusters=(2,))


@pytest.mark.parametrize("messages", [(), (message(0), message(0))], ids=["none", "two"])
def test_one_entry_per_party(messages):
    with pytest.raises(ParameterError, match="one entry per party"):
        ExactEstimator(messages=messages, n_local_clusters=(2,))
