"""Makes the schemas of the structs usable for generators of clients.

- Names are those of the classes. Where two classes share one, the module is added: `AgentModel`, not
  `portico.kernel.agent.Model`. A class with a field of its own name, such as `Agents` with `agents`, is `AgentsAnswer`:
  generators use one name for both.
- An object without declared fields is marked as open. Generators otherwise make it an object that is always empty.
- A default is a sentence and `x-default`. Generators take a field with `default` for one that is always present, but it
  may be left out in requests, and the host leaves out some in answers.
- A tuple has no `items: false`, which some generators do not read.
"""

from collections.abc import Mapping
from typing import Any

from portico.kernel.events import Json

_REFERENCE = "#/components/schemas/"


def public_names(schemas: Mapping[str, Json]) -> dict[str, str]:
    """The name in the document for each name that msgspec gave."""
    found: dict[str, str] = {}
    for name, schema in schemas.items():
        *modules, own = name.split(".")
        shown = f"{_title(modules[-1])}{own}" if modules else own
        if own.lower() in schema.get("properties", {}):
            shown = f"{shown}Answer"
        if shown in found.values() or (shown != name and shown in schemas):
            shown = f"{''.join(map(_title, modules[1:]))}{own}Shape"
        found[name] = shown
    return found


def _title(module: str) -> str:
    return module.title().replace("_", "")


def tidy(schema: Any, names: dict[str, str]) -> Any:
    """A copy of a schema for the document."""
    if isinstance(schema, list):
        return [tidy(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(_REFERENCE)
        return {**schema, "$ref": f"{_REFERENCE}{names.get(name, name)}"}
    made = {key: value if key in ("enum", "const", "default") else tidy(value, names) for key, value in schema.items()}
    if "properties" in made:  # its keys are names of fields, not keywords
        made["properties"] = {name: _field(tidy(each, names)) for name, each in schema["properties"].items()}
    elif made.get("type") == "object":
        made.setdefault("additionalProperties", True)
    if made.get("items") is False:
        del made["items"]
    return made


def _field(schema: Json) -> Json:
    if "default" not in schema:
        return schema
    default = schema.pop("default")
    schema["x-default"] = default
    if default in ("", None, [], {}):
        return schema
    words = f"Default: `{str(default).lower() if isinstance(default, bool) else default}`."
    return {**schema, "description": f"{schema['description']} {words}" if "description" in schema else words}
