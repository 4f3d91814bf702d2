package cell

// elderAskings are those that other architectures have and this one has not.
func elderAskings() []asking { return nil }

// elderHarms are those that other architectures have and this one has not.
func elderHarms(func(string, bool, func(string, uint32)) attempt, func(uintptr, ...uintptr), func(string) uintptr) []attempt {
	return nil
}
