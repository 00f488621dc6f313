package alfworld

// prior is how likely an object of a class is in a receptacle of a class, as a weight; without knowledge it is 1.
func prior(object, place string) float64 { return 1 }
