"""The public names are a promise; this list changes only on purpose."""

import splitmeans


def test_public_names() -> None:
    assert sorted(splitmeans.__all__) == [
        "Budget",
        "Column",
        "DataError",
        "DecoyOptions",
        "DetailOptions",
        "InsecureSeededNoise",
        "ParameterError",
        "PartySpec",
        "PrivacyError",
        "PrivacyFacts",
        "ProtocolError",
        "Result",
        "SketchOptions",
        "SplitmeansError",
        "Study",
        "StudyError",
        "Synopsis",
        "VerticalKMeans",
        "__version__",
        "demo_customers",
        "forecast",
        "prepare_table",
        "segment_probabilities",
    ]


def test_every_public_name_exists_and_has_a_docstring() -> None:
    for name in splitmeans.__all__:
        if name != "__version__":
            assert getattr(splitmeans, name).__doc__, name
