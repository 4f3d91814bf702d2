package cell

// elderAskings are those that other architectures have and this one has not.
func elderAskings() []asking { return nil }
