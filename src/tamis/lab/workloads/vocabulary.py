"""Words for command lines and for the patterns that search them: invented, but of the usual
form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

_ONSETS: Final = ("b", "c", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "tr", "st")
_VOWELS: Final = ("a", "e", "i", "o", "u", "ea", "io")
_CODAS: Final = ("", "", "n", "r", "s", "t", "x", "ck", "nd", "ll")
_VERBS: Final = ("Get", "Set", "New", "Add", "Invoke", "Start", "Stop", "Remove", "Import", "Test")
_NOUNS: Final = (
    *("Service", "Process", "Item", "Content", "Object", "Policy", "Module", "Computer", "User"),
    *("Group", "Domain", "Session", "Job", "Task", "Event", "Log", "Share", "Disk", "Network"),
)
_FOLDERS: Final = (
    *("Windows", "System32", "SysWOW64", "Temp", "Users", "Public", "ProgramData", "AppData"),
    *("Local", "Roaming", "Downloads", "Desktop", "Drivers", "Tasks", "Microsoft", "Common Files"),
)
_EXTENSIONS: Final = (".exe", ".dll", ".ps1", ".bat", ".vbs", ".js", ".txt", ".dat", ".zip", ".tmp")
_OPTIONS: Final = (
    *("-encoded", "-nop", "-hidden", "-file", "-command", "/c", "/k", "/quiet", "/user", "/add"),
    *("/delete", "/create", "/query", "--config", "--output", "-f", "-o", "-Path", "-Force", "-v"),
)


def draw_words(rng: Random, n_words: int) -> list[str]:
    """At most `n_words` distinct words of one to three syllables."""
    words = sorted({_draw_word(rng) for _ in range(n_words)})
    rng.shuffle(words)
    return words


def _draw_word(rng: Random) -> str:
    n_syllables = rng.choice((1, 2, 2, 2, 3))
    syllables = (_ONSETS, _VOWELS, _CODAS) * n_syllables
    return "".join(map(rng.choice, syllables))


class Vocabulary:
    """Builds options, files, paths and other parts of command lines from words."""

    def __init__(self, rng: Random, words: list[str]) -> None:
        self.rng = rng
        self.words = words

    def word(self) -> str:
        """A word; those at the front of the list are far more frequent."""
        # A product of two uniform numbers is small most of the time.
        place = self.rng.random() * self.rng.random()
        return self.words[int(place * len(self.words))]

    def file_name(self) -> str:
        """A file name such as `trean7.dll`."""
        number = str(self.rng.randrange(100)) if self.rng.random() < 0.3 else ""
        return f"{self.word()}{number}{self.rng.choice(_EXTENSIONS)}"

    def program(self) -> str:
        """A program name such as `trean.exe`."""
        return f"{self.word()}.exe"

    def folder(self) -> str:
        """A folder name such as `Temp`."""
        return self.rng.choice(_FOLDERS) if self.rng.random() < 0.5 else self.word().title()

    def path(self, name: str) -> str:
        r"""A full path of a file of that name, such as `C:\Users\Temp\x.dll`."""
        folders = [self.folder() for _ in range(self.rng.randint(1, 4))]
        return "\\".join(["C:", *folders, name])

    def option(self) -> str:
        """An option such as `-nop` or `--vient=sorax`."""
        draw = self.rng.random()
        if draw < 0.4:
            return self.rng.choice(_OPTIONS)
        if draw < 0.7:
            return f"{self.rng.choice(('-', '/', '--'))}{self.word()}"
        return f"--{self.word()}={self.word()}"

    def cmdlet(self) -> str:
        """A cmdlet such as `Get-ServiceVient`."""
        verb, noun = self.rng.choice(_VERBS), self.rng.choice(_NOUNS)
        return f"{verb}-{noun}{self.word().title() if self.rng.random() < 0.6 else ''}"

    def token(self) -> str:
        """One word of a command line."""
        draw = self.rng.random()
        if draw < 0.3:
            return self.option()
        if draw < 0.45:
            return self.path(self.file_name())
        if draw < 0.6:
            return self.cmdlet()
        if draw < 0.7:
            return f"https://{self.word()}.{self.word()}.com/{self.file_name()}"
        if draw < 0.8:
            return f"{self.rng.getrandbits(48):x}"
        return self.word()

    def fragment(self) -> str:
        """A fragment that a detection rule searches for in a command line: as short as possible."""
        draw = self.rng.random()
        if draw < 0.25:
            return f" {self.option()} " if self.rng.random() < 0.5 else f" {self.option()}"
        if draw < 0.4:
            return self.file_name()
        if draw < 0.5:
            return f"\\{self.folder()}\\{self.word()}"
        if draw < 0.65:
            return self.cmdlet()
        if draw < 0.75:
            return f"{self.word()}.{self.word()}("
        if draw < 0.85:
            return f"{self.word()}={self.word()}"
        return f"{self.word()} {self.word()}"
