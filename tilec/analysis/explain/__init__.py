"""Why a plan is as it is: the search is run again and tells its figures."""
