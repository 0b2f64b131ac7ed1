"""A golden record of the project's behaviour: the outcomes of a fixed list of targets, to compare after a refactoring.

``python -m scripts.golden write FILE`` runs the targets and writes the record. With ``--platform``, ``--variant`` or
``--seed``, only these rows are replaced. ``compare FILE`` runs the targets again and prints the differences, with
``--values OTHER`` as the values of the checkout in the folder ``OTHER`` and of this one.

The programs use only interfaces for users (``scrapy sandbox``, ``scrapy crawl``, ``scrapy extract``) and import nothing
of the package, so the record outlives renamed modules and classes. ``targets.jsonl`` has the targets: ``scraper`` and
``params`` (or ``platform`` and ``line``, a line that is not a valid target), the ``variants`` of the crawl (default:
plain), the ``seeds`` of the sandbox (default: 1 to 3), and the name of the sandbox's ``fault``, for the reader. A
target that no seed of the sandbox has is ``unknown``. The sorted order of the faults' names assigns them to handles and
ids: after a fault is added to the sandbox, change the list. A target with ``captures`` is extracted from captures.

Keys of the rows:

- ``sandbox/<seed>/<scraper>/<params> [<variant>]``: a target, or a follow-up request's target.
- ``sandbox/<seed>/<platform> [<variant>]``: a crawl: exit code, number of lines of the feed and the failures feed.
- ``captures/<platform>/<name>``: a capture. ``scripts/captures.py`` says how captures are named.

A row has the code, message and upstream of the outcome, a hash of the details, a hash of each warning, and a hash of
the values at each path of the data. Messages about captures may quote them, so they are hashed too. A path is a
pattern, with ``[]`` for the indexes of a list: ``products[].name`` has the names of all products, and ``products[]``
the length of the list. Rows with the same paths name the same *shape*, a line that lists the paths.

The record omits values that differ between runs of the same code: generated ids, ``fetched_at``, durations, and the
port in origins.
"""
