"""Campaigns: random attacks that run for as long as they are asked to, each seeded, with what to repeat when one succeeds."""
