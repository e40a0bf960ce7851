"""What each stage asks the Engine: DSPy signatures and their typed fields."""
