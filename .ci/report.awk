# Reads what go test -v says and prints one line for a package that passes, with
# how many of all are done and how long it took, and everything about one that
# does not. At the end come the packages and the tests that took longest, and the
# tests that skipped themselves; with SWARMDECK_CI set these fail. -v of=N says how many
# packages there are.

# A package's line ends what was said about it.
/^(ok  |FAIL|\?   )\t/ {
	if ($1 == "FAIL") {
		failed = 1
		for (i = 1; i <= n; i++) print held[i]
	}
	done++
	print $0 (of ? "\t" done " of " of : "")
	fflush()
	if ($3 ~ /^[0-9.]+s$/) took[$2] = $3 + 0
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
/^--- PASS: / { tests[$3] = substr($4, 2) + 0 }
/^ *--- PASS: / { next }
/^(PASS|FAIL)$/ { next }

title != "" { held[++n] = title; title = "" }
{ held[++n] = $0 }

END {
	for (i = 1; i <= n; i++) print held[i]
	longest("longest: ", took, 5)
	longest("longest tests: ", tests, 20)
	for (i = 1; i <= skips; i++) print "skipped: " skipped[i] " in " owner[i]
	if (skips && ENVIRON["SWARMDECK_CI"] != "") {
		print "no test may skip itself here"
		failed = 1
	}
	if (failed) print "FAIL"
	exit failed
}

# longest prints the names of those that took longest, with their seconds.
function longest(title, took, most,   n, name, top) {
	for (n = 0; n < most; n++) {
		top = ""
		for (name in took) if (top == "" || took[name] > took[top]) top = name
		if (top == "" || took[top] < 1) break
		printf "%s%s %ds", n ? ", " : title, top, took[top]
		delete took[top]
	}
	if (n) print ""
}
