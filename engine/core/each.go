package core

// Map is what of makes of each of a list; nil of none.
func Map[T, U any](list []T, of func(T) U) []U {
	if len(list) == 0 {
		return nil
	}
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = of(v)
	}
	return out
}

// Where are those of a list that are wanted; nil for none.
func Where[T any](list []T, wanted func(T) bool) (out []T) {
	for _, v := range list {
		if wanted(v) {
			out = append(out, v)
		}
	}
	return out
}
