"""Who may do what with the supply: everybody signed in reads it, administrators change it."""

from portal.identity.models import User


def can_view_supply(user: User) -> bool:
    """Return whether the person may look at clusters, nodes and flavors."""
    return user.is_active


def can_administer_supply(user: User) -> bool:
    """Return whether the person may register clusters and define flavors and levels."""
    return user.is_active and user.is_platform_admin
