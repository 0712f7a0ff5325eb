"""All HTML: one jinja2 environment over the templates in this folder, which escapes what they show.

Names of studies, parties, columns and categories come from files that others wrote, and a page is
read in a browser: so every text is escaped unless a template itself wrote it. A name that a
template does not know is an error, not an empty text.
"""

import base64
import hashlib

from jinja2 import Environment, PackageLoader, StrictUndefined

ENVIRONMENT = Environment(
    loader=PackageLoader("splitmeans", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}


def render(template: str, **values: object) -> str:
    """Return a page or a part of one."""
    return ENVIRONMENT.get_template(template).render(values)


def sha256(script: str) -> str:
    """Return the hash by which a content security policy allows one script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


ENVIRONMENT.filters["sha256"] = sha256
