"""What a Spark session needs for Hudi."""

HUDI_CONF = {
    # Hudi's records are only serializable with Kryo.
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    # Lists as Parquet specifies them, and as compactions write them. In those of old, Hudi's default, an array has no
    # place for a null: one such row would fail its batch at every start.
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    # Zstd's own default, 3, takes 5 % off the rows per second of a copy-on-write table, and its files are no smaller.
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
}
