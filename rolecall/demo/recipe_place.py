"""Where the demonstration's recipe is."""

from pathlib import Path

RECIPE = Path(__file__).with_name("recipe.yaml")
