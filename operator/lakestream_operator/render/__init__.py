"""What a LakeStream's objects should look like: pure builders."""

from lakestream_operator.render.application import executor_needs, render_application, settings_hash
from lakestream_operator.render.document import Plan, Wanted, document_of, is_restart, plan_of, scaling_of, wanted_of
from lakestream_operator.render.objects import control_manifest, document_manifest, labelled, supports

__all__ = [
    "Plan",
    "Wanted",
    "control_manifest",
    "document_manifest",
    "document_of",
    "executor_needs",
    "is_restart",
    "labelled",
    "plan_of",
    "render_application",
    "scaling_of",
    "settings_hash",
    "supports",
    "wanted_of",
]
