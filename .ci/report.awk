# Reads what go test -v says and prints what go test says without it: one line
# for a package that passes, everything about one that does not. Tests that
# skipped themselves are listed at the end; with SWARMDECK_CI set they fail.

# A package's line ends what was said about it.
/^(ok  |FAIL|\?   )\t/ {
	if ($1 == "FAIL") {
		failed = 1
		for (i = 1; i <= n; i++) print held[i]
	}
	print
	fflush()
	while (named < skips) owner[++named] = $2
	n = aloud = 0
	title = ""
	next
}

# What the go command itself says: compile errors, downloads.
/^(# |go: )/ { aloud = 1 }
aloud { print; next }

/^ *--- SKIP: / { skipped[++skips] = $3; next }
/^ *=== PAUSE / { next }
/^ *=== (RUN|CONT|NAME) / { title = $0; next } # shown only above what that test says
/^ *--- PASS: / { next }
/^(PASS|FAIL)$/ { next }

title != "" { held[++n] = title; title = "" }
{ held[++n] = $0 }

END {
	for (i = 1; i <= n; i++) print held[i]
	for (i = 1; i <= skips; i++) print "skipped: " skipped[i] " in " owner[i]
	if (skips && ENVIRON["SWARMDECK_CI"] != "") {
		print "no test may skip itself here"
		failed = 1
	}
	if (failed) print "FAIL"
	exit failed
}
