package screen

// Step is how many lines a named action moves, down from 0, where so many are a page;
// ok is false for an action that is no step.
func Step(action string, page int) (lines int, ok bool) {
	page = max(page, 1)
	half := max(page/2, 1)
	lines, ok = map[string]int{"up": -1, "down": 1, "half-up": -half, "half-down": half, "page-up": -page, "page-down": page}[action]
	return lines, ok
}

// Window is the first of n rows to show in h lines so that row at is in sight
// and as little as possible moves.
func Window(top, at, h, n int) int {
	if at < top {
		top = at
	}
	if h > 0 && at >= top+h {
		top = at - h + 1
	}
	return max(0, min(top, n-h))
}
