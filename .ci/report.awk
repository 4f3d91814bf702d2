# Reads what go test -v says and prints one line for a package that passes, with
# how many of all are done and how long it took, and everything about one that
# does not. At the end come the packages that took longest, and the tests that
# skipped themselves; with SWARMDECK_CI set these fail. -v of=N says how many
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
/^ *--- PASS: / { next }
/^(PASS|FAIL)$/ { next }

title != "" { held[++n] = title; title = "" }
{ held[++n] = $0 }

END {
	for (i = 1; i <= n; i++) print held[i]
	for (n = 0; n < 5; n++) {
		longest = ""
		for (name in took) if (longest == "" || took[name] > took[longest]) longest = name
		if (longest == "" || took[longest] < 1) break
		printf "%s%s %ds", n ? ", " : "longest: ", longest, took[longest]
		delete took[longest]
	}
	if (n) print ""
	for (i = 1; i <= skips; i++) print "skipped: " skipped[i] " in " owner[i]
	if (skips && ENVIRON["SWARMDECK_CI"] != "") {
		print "no test may skip itself here"
		failed = 1
	}
	if (failed) print "FAIL"
	exit failed
}
