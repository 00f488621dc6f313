package web

// pageRoutes lists the pages of runs, groups and trajectories.
func (s *Server) pageRoutes() []route {
	return []route{}
}
