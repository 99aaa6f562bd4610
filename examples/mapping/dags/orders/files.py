"""The steps of the DAG `orders_by_region`: plain functions, called with what they ask for by name."""


def list_files(ds, regions, per_region):
    """One file per region and part: known only when it runs."""
    return {"files": [f"{region}/{ds}-{part}.csv" for region in regions for part in range(per_region)]}


def load(file, try_number, idempotency_key):
    """Loads one file; how many rows it had."""
    print(f"loading {file} (try {try_number}, key {idempotency_key})")
    return {"file": file, "rows": len(file)}


def report(outputs):
    """Adds up what all instances of `load` returned."""
    rows = outputs["load"]["rows"]
    return {"files": len(rows), "rows": sum(rows)}
