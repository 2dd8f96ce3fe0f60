# SPDX-License-Identifier: Apache-2.0
"""Middleware that lagometer may not distribute: the user's own installation and licence, if there is one.

Studies may name it like any other. Without an adapter of its name, its cells are excluded, and the reason
says what was searched and where. An adapter of that name (docs/ADAPTERS.md, "Your own installation") replaces
it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

WRITE_ONE = "docs/ADAPTERS.md, 'Write one'"


@dataclass(frozen=True)
class Product:
    """One such middleware.

    variable: names its folder; holds: the folder's required contents, a pattern for each name;
    licence_variables: locate the licence, the first that is set wins; licence_file: its default place in the
    folder; licence_note: who needs one; licence_server: whether `port@host` is valid, too.
    """

    name: str
    title: str
    variable: str
    holds: Mapping[str, str]
    licence_variables: tuple[str, ...]
    licence_file: str
    licence_note: str
    licence_server: bool = False


PRODUCTS: Mapping[str, Product] = {
    product.name: product
    for product in (
        Product(
            name="connext",
            title="RTI Connext DDS",
            variable="NDDSHOME",
            holds={"include/ndds": "include/ndds", "lib/<architecture>": "lib/*/libnddscore*"},
            licence_variables=("RTI_LICENSE_FILE",),
            licence_file="rti_license.dat",
            licence_note="evaluation and license-managed packages need one",
        ),
        Product(
            name="opensplice",
            title="Vortex OpenSplice",
            variable="OSPL_HOME",
            holds={"include/dcps": "include/dcps", "lib/libddskernel": "lib/libddskernel*"},
            licence_variables=("ADLINK_LICENSE", "prismtech_LICENSE", "RLM_LICENSE"),
            licence_file="etc/license.lic",
            licence_note="the community edition needs none",
            licence_server=True,
        ),
    )
}


@dataclass(frozen=True)
class Installation:
    """What was found of a product. home: its folder, None if it is missing or incomplete; lacking: why;
    licence: where it is, or where it was searched."""

    product: Product
    home: Path | None
    lacking: str
    licence: str

    @property
    def says(self) -> str:
        """One sentence: why the product can't be measured here, and what to do."""
        product = self.product
        if self.home is None:
            return (
                f"not found: {self.lacking}; {product.title} is your own installation and licence: set "
                f"{product.variable} to the folder with {' and '.join(product.holds)}, and "
                f"{product.licence_variables[0]} to the licence ({product.licence_note})"
            )
        return (
            f"never run: {product.title} is found at {self.home} ({self.licence}), but lagometer has no "
            "adapter for it that has ever been compiled; one can be written against its headers "
            f"({WRITE_ONE})"
        )


def look_for(product: Product, environment: Mapping[str, str] | None = None) -> Installation:
    """Looks for one product; `environment`: None means this process's."""
    variables = os.environ if environment is None else environment
    folder = variables.get(product.variable, "")
    home = Path(folder)
    lacking = ""
    if not folder:
        lacking = f"{product.variable} is not set"
    elif not _holds(home.is_dir):
        lacking = f"{product.variable} is '{folder}', which is not a folder"
    elif absent := [part for part, pattern in product.holds.items() if not any(home.glob(pattern))]:
        lacking = f"{product.variable} is '{folder}', which has no {' and no '.join(absent)}"
    whole_home = None if lacking else home
    return Installation(product, whole_home, lacking, _licence(product, whole_home, variables))


def without_adapter(
    adapters: Collection[str], environment: Mapping[str, str] | None = None
) -> Iterator[Installation]:
    """What was found of each product that none of these adapters supports."""
    for product in PRODUCTS.values():
        if product.name not in adapters:
            yield look_for(product, environment)


def _holds(test: Callable[[], bool]) -> bool:
    """The result of the test on a path; False if this user has no access."""
    try:
        return test()
    except OSError:
        return False


def _licence(product: Product, home: Path | None, variables: Mapping[str, str]) -> str:
    for variable in product.licence_variables:
        value = variables.get(variable, "")
        if not value:
            continue
        if _holds(Path(value).exists) or (product.licence_server and "@" in value):
            return f"licence: {variable}={value}"
        return f"no licence: {variable} is '{value}', which does not exist"
    places = list(product.licence_variables)
    if home is not None:
        places.append(str(home / product.licence_file))
        if _holds((home / product.licence_file).exists):
            return f"licence: {places[-1]}"
    return f"no licence: looked at {', '.join(places)}; {product.licence_note}"
