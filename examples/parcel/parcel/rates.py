"""What a parcel costs to send."""

from dataclasses import dataclass

FUEL_SURCHARGE = 0.12


@dataclass(frozen=True)
class Parcel:
    weight_grams: int
    express: bool = False


def shipping_price(parcel: Parcel) -> float:
    """Price in euros: a base rate by weight, doubled for express, plus the fuel surcharge."""
    base = 4.20 if parcel.weight_grams <= 1000 else 4.20 + 0.0015 * (parcel.weight_grams - 1000)
    if parcel.express:
        base *= 2
    return round(base * (1 + FUEL_SURCHARGE), 2)
