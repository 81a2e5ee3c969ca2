"""Records in Avro, framed by the serializers of the AWS Glue Schema Registry, as JSON."""

from lakestream.avro.registry import GlueRegistry, RegistrySettings, SchemaVersion
from lakestream.avro.texts import AvroTexts, in_json, texts_of

__all__ = ["AvroTexts", "GlueRegistry", "RegistrySettings", "SchemaVersion", "in_json", "texts_of"]
