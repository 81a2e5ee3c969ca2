"""Engines from Maven, kept in the user's cache for all checkouts."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lakestream.spark.jars import jars_cache, locked, spark_jars
from lakestream.spark.java import java_home

_IVY = """
<ivy-module version="2.0">
  <info organisation="dev.lakestream" module="engines"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{organisation}" name="{name}" rev="{revision}" conf="default->master" transitive="false">
      <artifact name="{name}" type="{kind}" ext="{kind}"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def fetched(organisation: str, name: str, revision: str, kind: str = "jar") -> Path:
    """One file, by Spark's Ivy; fetched once."""
    folder = jars_cache().parent / "engines"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{revision}.{kind}"
    with locked(folder / "lock"):
        if not path.exists():
            described = folder / "ivy.xml"
            described.write_text(
                _IVY.format(organisation=organisation, name=name, revision=revision, kind=kind), "utf-8"
            )
            (ivy,) = spark_jars().glob("ivy-*.jar")
            subprocess.run(
                [
                    str(java_home() / "bin" / "java"),
                    *("-cp", str(ivy), "org.apache.ivy.Main", "-warn"),
                    *("-ivy", str(described), "-cache", str(folder / "ivy")),
                    *("-retrieve", f"{folder}/partial-[artifact]-[revision].[ext]"),
                ],
                check=True,
                timeout=900,
            )
            path.with_name(f"partial-{path.name}").rename(path)
    return path
