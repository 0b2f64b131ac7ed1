"""The simulated platforms: invented worlds behind real page structure, which know the truth of what they show.

An independent witness: nothing here imports the packages that read pages (platforms, reading, spiders).
"""
