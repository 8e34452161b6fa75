"""The shapes of the icons: 14 by 14 units, drawn in the colour of their text."""

# `m-cut` marks strokes that take the colour of the ground instead, to cut a sign out of a filled shape.
SHAPES: dict[str, str] = {
    # States
    "ring": '<circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" stroke-width="1.6"/>',
    "ring-dot": (
        '<circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" stroke-width="1.6"/>'
        '<circle cx="7" cy="7" r="2.1" fill="currentColor"/>'
    ),
    "half": (
        '<circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" stroke-width="1.6"/>'
        '<path d="M7 2a5 5 0 0 1 0 10z" fill="currentColor"/>'
    ),
    "disc": '<circle cx="7" cy="7" r="5.6" fill="currentColor"/>',
    "triangle": (
        '<path d="M7 1.2 13.2 12.4H.8z" fill="currentColor" stroke="currentColor" stroke-linejoin="round"/>'
        '<path class="m-cut" d="M7 5v3.6M7 10v1.1" stroke-width="1.5"/>'
    ),
    "check": (
        '<path d="m2 7.4 3.4 3.4L12 3.6" fill="none" stroke="currentColor" stroke-width="2.2"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    ),
    "octagon-x": (
        '<path d="M4.5.9h5l3.6 3.6v5l-3.6 3.6h-5L.9 9.5v-5z" fill="currentColor"/>'
        '<path class="m-cut" d="m4.8 4.8 4.4 4.4m0-4.4L4.8 9.2" stroke-width="1.6"/>'
    ),
    "ring-slash": (
        '<circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" stroke-width="1.6"/>'
        '<path d="M3.6 10.4 10.4 3.6" stroke="currentColor" stroke-width="1.6"/>'
    ),
    "question": (
        '<path d="M4.4 4.9a2.6 2.6 0 1 1 3.9 2.2C7.4 7.6 7 8 7 9" fill="none" stroke="currentColor"'
        ' stroke-width="1.7" stroke-linecap="round"/><circle cx="7" cy="11.5" r="1.1" fill="currentColor"/>'
    ),
    # User interface
    "cross": (
        '<path d="m3.4 3.4 7.2 7.2m0-7.2-7.2 7.2" fill="none" stroke="currentColor" stroke-width="1.8"'
        ' stroke-linecap="round"/>'
    ),
    "plus": '<path d="M7 2v10M2 7h10" stroke="currentColor" stroke-width="1.7" stroke-linecap="round"/>',
    "caret": '<path d="m3.5 5.5 3.5 3.5 3.5-3.5" fill="none" stroke="currentColor" stroke-width="1.6"/>',
    "up": '<path d="M7 11.5v-9M3.5 6 7 2.5 10.5 6" fill="none" stroke="currentColor" stroke-width="1.6"/>',
    "down": '<path d="M7 2.5v9M3.5 8 7 11.5 10.5 8" fill="none" stroke="currentColor" stroke-width="1.6"/>',
    "menu": '<path d="M1.5 3.5h11M1.5 7h11M1.5 10.5h11" stroke="currentColor" stroke-width="1.5"/>',
    "auto": (
        '<circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" stroke-width="1.4"/>'
        '<path d="M7 1.8a5.2 5.2 0 0 1 0 10.4z" fill="currentColor"/>'
    ),
    "light": (
        '<circle cx="7" cy="7" r="2.6" fill="currentColor"/><path d="M7 .8v1.8M7 11.4v1.8M.8 7h1.8M11.4 7h1.8'
        'M2.6 2.6l1.3 1.3M10.1 10.1l1.3 1.3M11.4 2.6l-1.3 1.3M3.9 10.1l-1.3 1.3" stroke="currentColor"'
        ' stroke-width="1.3"/>'
    ),
    "dark": '<path d="M11.8 8.6A5.2 5.2 0 0 1 5.4 2.2a5.2 5.2 0 1 0 6.4 6.4z" fill="currentColor"/>',
    "person": (
        '<circle cx="7" cy="4.4" r="2.6" fill="currentColor"/>'
        '<path d="M1.8 12.6c.4-3 2.4-4.4 5.2-4.4s4.8 1.4 5.2 4.4z" fill="currentColor"/>'
    ),
    "pause": '<path d="M4.4 2.5v9M9.6 2.5v9" stroke="currentColor" stroke-width="2.2"/>',
    "play": '<path d="M3.6 2v10l8-5z" fill="currentColor"/>',
    "lock": (
        '<path d="M4.4 6V4.3a2.6 2.6 0 0 1 5.2 0V6" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        '<rect x="2.6" y="6" width="8.8" height="6.4" rx="1.2" fill="currentColor"/>'
    ),
    "external": (
        '<path d="M5.5 3H3v8h8V8.5M7.8 2.2h4v4M11.6 2.4 6.6 7.4" fill="none" stroke="currentColor" stroke-width="1.4"/>'
    ),
    "copy": (
        '<rect x="4.6" y="4.6" width="7.4" height="7.4" rx="1" fill="none" stroke="currentColor"'
        ' stroke-width="1.4"/>'
        '<path d="M9.4 2.2H2.2v7.2" fill="none" stroke="currentColor" stroke-width="1.4"/>'
    ),
}
