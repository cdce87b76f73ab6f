"""A table written as Parquet by s3fs and pyarrow, and read by three clients: pyarrow over s3fs, pyarrow's own (the AWS SDK for C++), polars.

    parquet.py ENDPOINT BUCKET: run by tests/clients/test_python_clients.py, with the keys in the environment
"""

import sys

import polars
import pyarrow
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import s3fs

ROWS, GROUP = 600_000, 50_000
endpoint, bucket = sys.argv[1:]
table = pyarrow.table({"id": range(ROWS), "city": [("Bern", "Zürich", "Genève")[number % 3] for number in range(ROWS)],
                       "value": [number * 7919 % 1_000_003 / 3 for number in range(ROWS)]})
expected = {city: sum(number * 7919 % 1_000_003 / 3 for number in range(start, ROWS, 3)) for start, city in enumerate(("Bern", "Zürich", "Genève"))}


def near(sums):
    assert set(sums) == set(expected) and all(abs(sums[city] - value) < 1e-6 * value for city, value in expected.items()), (sums, expected)


def by_s3fs():
    files = s3fs.S3FileSystem(endpoint_url=endpoint)
    files.mkdir(bucket)
    # small blocks: an upload in parts
    with files.open(f"{bucket}/whole.parquet", "wb", block_size=5 * 2**20) as out:
        pyarrow.parquet.write_table(table, out, row_group_size=GROUP, compression="none", use_dictionary=False)
    assert "-" in files.info(f"{bucket}/whole.parquet")["ETag"], "one part is no test of parts"
    pyarrow.dataset.write_dataset(table, f"{bucket}/by city", filesystem=files, format="parquet",
                                  partitioning=pyarrow.dataset.partitioning(pyarrow.schema([("city", pyarrow.string())]), flavor="hive"))
    assert len(files.find(f"{bucket}/by city")) == 3 and files.isdir(f"{bucket}/by city")
    assert pyarrow.parquet.read_table(f"{bucket}/whole.parquet", filesystem=files).equals(table)
    group = pyarrow.parquet.ParquetFile(files.open(f"{bucket}/whole.parquet", "rb")).read_row_group(7, columns=["id"])  # ranges only
    assert group["id"].to_pylist() == list(range(7 * GROUP, 8 * GROUP))
    files.mv(f"{bucket}/whole.parquet", f"{bucket}/moved.parquet")
    files.cp(f"{bucket}/moved.parquet", f"{bucket}/whole.parquet")
    files.pipe(f"{bucket}/note.txt", b"hello")
    assert files.cat(f"{bucket}/note.txt") == b"hello" and files.exists(f"{bucket}/moved.parquet") and not files.exists(f"{bucket}/none")
    return files


def by_the_sdk_for_cpp():
    scheme, _, host = endpoint.partition("://")
    files = pyarrow.fs.S3FileSystem(endpoint_override=host, scheme=scheme, region="us-east-1")
    found = pyarrow.dataset.dataset(f"{bucket}/by city", filesystem=files, format="parquet", partitioning="hive").to_table()
    near({row["city"]: row["value_sum"] for row in found.group_by("city").aggregate([("value", "sum")]).to_pylist()})
    files.create_dir(f"{bucket}/made by it")
    with files.open_output_stream(f"{bucket}/made by it/copy.parquet") as out:
        pyarrow.parquet.write_table(table, out, compression="none", use_dictionary=False)
    assert pyarrow.parquet.read_metadata(f"{bucket}/made by it/copy.parquet", filesystem=files).num_rows == ROWS
    kinds = {info.base_name: info.type for info in files.get_file_info(pyarrow.fs.FileSelector(f"{bucket}/made by it"))}
    assert kinds == {"copy.parquet": pyarrow.fs.FileType.File}, kinds
    files.delete_dir(f"{bucket}/made by it")
    assert files.get_file_info(f"{bucket}/made by it").type == pyarrow.fs.FileType.NotFound


def by_polars():
    options = {"aws_endpoint_url": endpoint, "aws_region": "us-east-1", "aws_allow_http": "true"}
    for place, more in (("whole.parquet", {}), ("by city/**/*.parquet", {"hive_partitioning": True})):
        scanned = polars.scan_parquet(f"s3://{bucket}/{place}", storage_options=options, **more)
        near(dict(scanned.group_by("city").agg(polars.col("value").sum()).collect().iter_rows()))
    few = polars.scan_parquet(f"s3://{bucket}/whole.parquet", storage_options=options).filter(polars.col("id") == 123_456).collect()
    assert few.to_dicts() == [{"id": 123_456, "city": "Bern", "value": 123_456 * 7919 % 1_000_003 / 3}]
    few.write_parquet(f"s3://{bucket}/few.parquet", storage_options=options)
    assert polars.read_parquet(f"s3://{bucket}/few.parquet", storage_options=options).equals(few)


files = by_s3fs()
by_the_sdk_for_cpp()
by_polars()
files.rm(bucket, recursive=True)
assert not files.exists(bucket)
