import copy
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from portico.features.jobs import EntryError, demo_entry, entry_schema, to_json
from portico.features.jobs.demo import demo_text
from portico.features.jobs.load import read_entry
from tests.jobs.samples import Data, entry_data, works
from tests.jobs.test_load import FULL, at, places

GOLDEN = Path(__file__).parent / "golden"
VALIDATOR = Draft202012Validator(entry_schema())


def test_the_published_schema_changes_only_on_purpose() -> None:
    assert entry_schema() == json.loads((GOLDEN / "entry.schema.json").read_text())


def test_the_schema_is_a_schema_and_takes_what_we_ship() -> None:
    Draft202012Validator.check_schema(entry_schema())
    for text in (demo_text(), to_json(demo_entry()), json.dumps(FULL)):
        VALIDATOR.validate(json.loads(text))


WRONG = st.sampled_from([None, True, 0, -1, 2.5, "", "text", [], [None], {}, {"kind": "Ref"}, {"kind": "Fork"}])


@given(data=st.data(), work=works(), wrong=WRONG)
def test_the_schema_and_the_reader_agree(data: st.DataObject, work: Data, wrong: object) -> None:
    entry = copy.deepcopy({**FULL, "jobs": entry_data(work)["jobs"]})
    # Which tools and models there are is for the rules, not for the reader.
    free = [place for place in places(entry)[1:] if "toolExecuted" not in place and place[0] != "models"]
    place = data.draw(st.sampled_from([each for each in free if "drivingSessionRetries" not in each]))
    at(entry, place[:-1])[place[-1]] = wrong
    try:
        read_entry(entry)
        readable = True
    except EntryError:
        readable = False
    assert VALIDATOR.is_valid(entry) == readable
