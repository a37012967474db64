from schemas.handoff import Handoff
from workspace.hub import Hub


def unspill(handoff: Handoff, hub: Hub) -> Handoff:
    return handoff
