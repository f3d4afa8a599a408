package grid
