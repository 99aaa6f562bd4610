# Calls `module:function` of a `python` task: its arguments are given by name, what it returns becomes
# the task's outputs. Nothing but the standard library; no file of Fencepost need be installed.
import datetime
import importlib
import inspect
import json
import os
import sys
import uuid

RETURN_VALUE = "return_value"


def instant(name):
    text = os.environ.get("FENCEPOST_" + name)
    return text and datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def read(name):
    with open(os.environ["FENCEPOST_" + name + "_FILE"], encoding="utf-8") as file:
        return json.load(file)


def context():
    """Everything that a function may ask for by the name of an argument."""
    env = os.environ.get
    params, inputs = read("PARAMS"), read("INPUTS")
    known = {
        "dag_id": env("FENCEPOST_DAG_ID"),
        "task_id": env("FENCEPOST_TASK_ID"),
        "run_id": env("FENCEPOST_RUN_ID"),
        "run_type": env("FENCEPOST_RUN_TYPE"),
        "map_index": int(env("FENCEPOST_MAP_INDEX", "-1")),
        "logical_date": instant("LOGICAL_DATE"),
        "data_interval_start": instant("DATA_INTERVAL_START"),
        "data_interval_end": instant("DATA_INTERVAL_END"),
        "ds": env("FENCEPOST_DS"),
        "ds_nodash": env("FENCEPOST_DS_NODASH"),
        "ts": env("FENCEPOST_TS"),
        "ts_nodash": env("FENCEPOST_TS_NODASH"),
        "try_number": int(env("FENCEPOST_TRY_NUMBER", "1")),
        "attempt_id": env("FENCEPOST_ATTEMPT_ID"),
        "fencing_token": int(env("FENCEPOST_FENCING_TOKEN", "0")),
        "idempotency_key": env("FENCEPOST_IDEMPOTENCY_KEY"),
        "params": params,
        "outputs": inputs,
        "triggering_asset_events": read("ASSET_EVENTS") if env("FENCEPOST_ASSET_EVENTS_FILE") else {},
        "mapped": json.loads(env("FENCEPOST_PYTHON_MAPPED", "{}")),
    }
    # The nearer name wins: an element of `expand`, then a param, then the context.
    return {**known, **params, **known["mapped"]}


def arguments(function, known):
    given = {}
    for name, of in inspect.signature(function).parameters.items():
        if of.kind is of.VAR_KEYWORD:
            return {**known, **given}
        if of.kind is of.VAR_POSITIONAL:
            continue
        if name in known:
            given[name] = known[name]
        elif of.default is of.empty:
            there = ", ".join(sorted(known))
            raise SystemExit(f"fencepost: no value for the argument `{name}`; there are: {there}")
    return given


def plain(value):
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    raise TypeError(f"an output must be JSON, and this is a {type(value).__name__}: {value!r}")


def write(result):
    if result is None:
        return
    outputs = result if isinstance(result, dict) else {RETURN_VALUE: result}
    end = "end-" + uuid.uuid4().hex
    with open(os.environ["FENCEPOST_OUTPUT_FILE"], "a", encoding="utf-8") as file:
        for name, value in outputs.items():
            text = value if isinstance(value, str) else json.dumps(value, default=plain)
            mark = "" if isinstance(value, str) else ":json"
            file.write(f"{name}{mark}<<{end}\n{text}\n{end}\n")


def main():
    # Not this script's own folder, which is the attempt's.
    sys.path.pop(0)
    module, _, path = os.environ["FENCEPOST_PYTHON"].partition(":")
    try:
        function = importlib.import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
    except (ModuleNotFoundError, AttributeError) as error:
        places = os.pathsep.join(place for place in sys.path if place)
        print(f"fencepost: {module}:{path} cannot be found: {error}; looked in {places}", file=sys.stderr)
        # As the shell says it of a program: it would not be there in two minutes either.
        raise SystemExit(127) from error
    # A decorated task function is called itself.
    function = getattr(function, "fn", function)
    write(function(**arguments(function, context())))


if __name__ == "__main__":
    main()
