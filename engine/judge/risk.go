package judge

var risks = map[Risk]int{Low: 1, Medium: 2, High: 3, Critical: 4}

func (r Risk) valid() bool { return risks[r] > 0 }

// above reports whether r is graver than other.
func (r Risk) above(other Risk) bool { return risks[r] > risks[other] }

// claimed is the risk that an ask claims: none means low, and one that is no
// risk at all counts as high.
func claimed(r Risk) Risk {
	switch {
	case r == "":
		return Low
	case !r.valid():
		return High
	}
	return r
}

func graver(a, b Risk) Risk {
	if b.above(a) {
		return b
	}
	return a
}

// AtLeast reports whether r is as grave as other, or graver.
func (r Risk) AtLeast(other Risk) bool { return risks[r] >= risks[other] }
