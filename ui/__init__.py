"""The chat page. Gradio reads this switch when it is imported, so it stands where nothing of ours can come before it."""

import os

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
