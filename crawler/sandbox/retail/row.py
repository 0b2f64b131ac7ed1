"""The rows of the simulated shop's listings, with all keys of real rows, and prices in one of two formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawler.sandbox.retail.product import Product


def row_of(product: Product, layout: str, *, sponsored: bool) -> dict[str, Any]:
    """Build a row. ``layout``: prices as A, price lines (since July 2026), or B, flat texts."""
    price = product.cents
    tracking = f"?classType=REGULAR&athbdg=L{1100 + product.number % 90}"
    return {
        "__typename": "Product",
        "buyBoxSuppression": False,
        "similarItems": False,
        "id": product.product_id,
        "usItemId": product.item_id,
        "isBadSplit": False,
        "fitmentLabel": None,
        "name": product.name,
        "checkStoreAvailabilityATC": False,
        "seeShippingEligibility": False,
        "brand": None,
        "type": "VARIANT" if product.variants is None or product.variants else "REGULAR",
        "shortDescription": product.description or None,
        "weightIncrement": 1,
        "topResult": None,
        "additionalOfferCount": product.number % 4,
        "availabilityInNearbyStore": None,
        "itemBeacon": f"{product.number:x}" * 8,
        "imageInfo": {
            "id": product.product_id,
            "name": f"{product.product_id}.jpeg",
            "thumbnailUrl": product.image,
            "size": "104-104",
            "allImages": [{"id": product.product_id, "url": product.image}],
        },
        "aspectInfo": {"name": None, "header": None, "id": None, "snippet": None},
        "canonicalUrl": product.path + tracking,
        "conditionV2": None if product.condition is None else {"code": product.condition, "groupCode": 1},
        "externalInfo": None,
        "itemType": None,
        "category": {"categoryPathId": "0:" + product.category.replace("_", ":"), "path": None},
        "returnPolicy": {
            "returnable": None,
            "freeReturns": None,
            "returnWindow": {"value": None, "unitType": "Day"},
            "returnPolicyText": None,
        },
        "badges": _badges(product),
        "buyNowEligible": True,
        "classType": "REGULAR",
        "averageRating": product.stars,
        "numberOfReviews": product.reviews,
        "esrb": None,
        "mediaRating": None,
        "salesUnitType": "EACH",
        "sellerId": product.seller[0] or None,
        "sellerName": product.seller[1] or None,
        "hasSellerBadge": None,
        **dict.fromkeys(("isEarlyAccessItem", "preEarlyAccessEvent", "earlyAccessEvent", "blitzItem"), False),
        **dict.fromkeys(("annualEvent", "annualEventV2"), False),
        "availabilityStatusV2": {"display": _display(product) or None, "value": product.status},
        "groupMetaData": {"groupType": None, "groupSubType": None, "numberOfComponents": 0, "groupComponents": None},
        "addOnServices": None,
        "productLocation": [{"displayValue": f"Aisle A{product.number % 30}", "aisle": {"zone": "A", "aisle": 4}}],
        "fulfillmentSpeed": None,
        "offerId": product.offer_id or None,
        "preOrder": {
            "isPreOrder": False,
            **dict.fromkeys(("preOrderMessage", "preOrderStreetDateMessage", "streetDate", "streetDateDisplayable")),
            **dict.fromkeys(("streetDateType", "releaseDate")),
        },
        "pac": None,
        "fulfillmentSummary": [
            {
                "fulfillment": "PICKUP",
                "storeId": "3081",
                "deliveryDate": "2026-11-24T21:59:00.000Z",
                "fulfillmentMethods": ["UNSCHEDULED"],
                "fulfillmentBadge": None,
            }
        ],
        "priceInfo": {"A": _lines, "B": _flat}[layout](product),
        "variantCriteria": [],
        "snapEligible": False,
        "fulfillmentTitle": "title_shipToHome_not_available",
        "fulfillmentType": product.fulfillment or None,
        "manufacturerName": None,
        "showAtc": True,
        "sponsoredProduct": _advertisement(product) if sponsored else None,
        "showOptions": False,
        "showBuyNow": False,
        **dict.fromkeys(("quickShop", "quickShopCTALabel", "rewards", "promoDiscount")),
        "arExperiences": {"isARHome": False, "isZeekit": False, "isAROptical": False},
        "eventAttributes": {"priceFlip": False, "specialBuy": False},
        "subscription": {"__typename": "Subscription", "subscriptionEligible": False, "showSubscriptionCTA": False},
        "hasCarePlans": False,
        "petRx": {"eligible": False, "singleDispense": None},
        "vision": {"ageGroup": None, "visionCenterApproved": False},
        "showExploreOtherConditionsCTA": False,
        "isPreowned": product.preowned,
        **dict.fromkeys(("pglsCondition", "newConditionProductId", "preownedCondition")),
        "keyAttributes": [],
        "mhmdFlag": False,
        "seeSimilar": False,
        "availabilityStatusDisplayValue": _display(product),
        "productLocationDisplayValue": f"Aisle A{product.number % 30}",
        "externalInfoUrl": "",
        "canAddToCart": price is not None,
        "description": product.description,
        "flag": product.flag,
        "badge": _badge(product),
        "groupsV2": None,
        "swipeableImages": [],
        "socialProofBadges": None,
        "fulfillmentBadges": [],
        "preOrderBadge": None,
        "fulfillmentBadgeGroups": [
            {
                "text": "Pickup ",
                "slaText": "tomorrow",
                "isSlaTextBold": True,
                "templates": None,
                "className": "dark-gray",
                "key": "FF_PICKUP",
            }
        ],
        "fulfillmentIcon": {"key": "PICKUP", "label": "Pickup"},
        "specialBuy": False,
        "priceFlip": False,
        "image": product.image,
        "imageSize": "104-104",
        "imageID": product.product_id,
        "imageName": f"{product.product_id}.jpeg",
        "isOutOfStock": product.status == "OUT_OF_STOCK",
        "price": 0 if layout == "A" or price is None else price / 100,
        # For a product without a rating, real pages contain 0 here. The record must contain null.
        "rating": {"averageRating": product.stars or 0, "numberOfReviews": product.reviews or 0},
        "salesUnit": "EACH",
        "variantList": [{"name": f"Option {n}"} for n in range(product.variants or 0)],
        "isVariantTypeSwatch": False,
        "shouldLazyLoad": False,
        "isSponsoredFlag": sponsored,
        "moqText": None,
        "isLeftSideGridItem": True,
        "productIndex": product.number % 50,
        "itemStackPosition": 1,
        "isAtfMarker": False,
        "catalogSellerId": "0",
    }


def _display(product: Product) -> str:
    return {"IN_STOCK": "In stock", "OUT_OF_STOCK": "Out of stock"}.get(product.status, "")


def _badge(product: Product) -> dict[str, Any]:
    key = product.flag.upper().replace(" ", "_")
    return {
        "__typename": "BaseBadge",
        "key": key,
        "text": product.flag,
        "type": "LABEL",
        "id": "L1600",
        "styleId": "FLAG",
        "bundleId": "",
    }


def _badges(product: Product) -> dict[str, Any]:
    icon = {"__typename": "BaseBadge", "key": "SAVE_WITH_W_PLUS", "text": "Save with", "type": "ICON"}
    member = {
        "__typename": "BadgeGroupMember",
        "id": "L1053",
        "key": "FF_SHIPPING",
        "memberType": "badge",
        "otherInfo": None,
        "rank": 1,
        "slaText": "tomorrow",
        "slaDate": None,
        "styleId": "FF_STYLE",
        "text": "Shipping, arrives ",
        "type": "LABEL",
        "iconId": None,
        "templates": None,
        "badgeContent": None,
    }
    flag = {k: v for k, v in _badge(product).items() if k != "bundleId"}
    return {
        "flags": [flag] if product.flag else [],
        "tags": [icon] if product.icon else [],
        "groups": [{"__typename": "UnifiedBadgeGroup", "name": "fulfillment", "members": [member]}],
        "groupsV2": None,
    }


def _advertisement(product: Product) -> dict[str, Any]:
    beacon = f"https://shop.example/sp/track?adid={product.number:032x}&pt=browse&slot=2&bkt=ace1_default"
    return {"spQs": f"{product.number:x}" * 24, "clickBeacon": beacon, "spTags": None, "viewBeacon": None}


def _money(cents: int) -> str:
    return f"${cents / 100:,.2f}"


_EMPTY_TEXTS = [
    "itemPrice",
    "linePrice",
    "linePriceDisplay",
    "savings",
    "wasPrice",
    "wasPriceSupportText",
    "unitPrice",
    "shipPrice",
    "minPriceForVariant",
    "priceRangeString",
    "subscriptionPrice",
    "subscriptionString",
    "subscriptionDiscountPrice",
    "priceDisplayCondition",
    "submapType",
    "eaPricingText",
    "eaPricingPreText",
    "memberPriceString",
]


def no_prices() -> dict[str, Any]:
    """Build the price object of a row without a price."""
    nothing = {"savingsAmt": 0, "minPrice": 0, "finalCostByWeight": False, "isB2BPrice": False}
    return {**dict.fromkeys(_EMPTY_TEXTS, ""), **nothing, "subscriptionDualPrice": None, "subscriptionPercentage": None}


def _lines(product: Product) -> dict[str, Any]:
    lines = []
    if product.cents is not None:
        kind = "DISCOUNTED_PRICE" if product.number % 5 == 0 else "CURRENT_PRICE"
        lines.append(_line(kind, PRICE=product.cents))
        lines.append(_line("COMPARISON", WAS_PRICE=product.cents * 2))
        lines.append({"lineType": "UNIT_PRICE", "values": [{"key": "UNIT_PRICE", "value": "13.7 ¢/count"}]})
    if product.low is not None and product.high is not None:
        lines.append(_line("OPTIONS_RANGE", LOW_PRICE=product.low, HIGH_PRICE=product.high))
    elif product.low is not None:
        lines.append(_line("OPTIONS", LOW_PRICE=product.low))
    return {**no_prices(), "priceDetails": {"currency": "USD", "priceLines": lines}}


def _line(kind: str, **cents: int) -> dict[str, Any]:
    return {"lineType": kind, "values": [{"key": key, "value": f"{value / 100:.2f}"} for key, value in cents.items()]}


def _flat(product: Product) -> dict[str, Any]:
    price = no_prices()
    if product.cents is None:
        return price
    price["linePrice"] = _money(product.cents)
    price["linePriceDisplay"] = f"Now {_money(product.cents)}"
    price["itemPrice"] = price["wasPrice"] = _money(product.cents * 2)
    price["shipPrice"] = _money(599)
    price["unitPrice"] = "13.7 ¢/count"
    if product.low is not None and product.high is not None:
        price["priceRangeString"] = f"Options from {_money(product.low)} – {_money(product.high)}"
    elif product.low is not None:
        price["priceRangeString"] = f"More options from {_money(product.low)}"
    return price
