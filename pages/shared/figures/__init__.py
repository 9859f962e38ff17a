"""Figures that several pages draw: arrays in, Plotly figures or HTML out, nothing of Streamlit."""
