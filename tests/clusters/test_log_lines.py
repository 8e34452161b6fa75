"""Logs are bytes that may be anything; what people see is text, whole where it can be."""

from clusters.k8s.logs import MAX_LINE, lines


def test_a_character_over_the_edge_of_a_chunk_stays_whole() -> None:
    euro = "€".encode()

    assert list(lines([b"a" + euro[:1], euro[1:] + b"\n"])) == ["a€"]


def test_only_bytes_that_are_truly_bad_become_replacement_signs() -> None:
    assert list(lines(["ä".encode("latin-1") + b" ok\n", "ä".encode()[:1]])) == ["\ufffd ok", "\ufffd"]


def test_carriage_returns_end_lines_and_nul_disappears() -> None:
    assert list(lines([b"10%\r20%\r", b"\ndone\x00\r\n", b"\r"])) == ["10%", "20%", "done"]


def test_a_line_without_end_comes_in_pieces_of_bounded_length() -> None:
    pieces = list(lines(b"x" * 10_000 for _ in range(500)))

    assert max(map(len, pieces)) <= MAX_LINE
    assert sum(map(len, pieces)) == 5_000_000
