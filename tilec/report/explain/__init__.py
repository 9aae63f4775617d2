"""Why a plan is as it is: the search is run again for what is asked about, and tells its figures (issue of every edge,
group and node); nothing is read from stored reasons."""
