"""The contract of an engine behind the door: whatever happens to a vault, it answers as the sidecar does. What takes a
`contract` runs for each of ENGINES; the rest is of PostgreSQL alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from index.terms.vault_of_words import term_index
from postgres import PROGRAMS, differences_from_rebuilt, needs_postgres, running

from simplemem.errors import SimplememError
from simplemem.index.api import IndexFilter, IndexQuery, Match, Matches, NoteScores, Term
from simplemem.index.engine import Connection, DatabaseRow, IntegerList, TextList
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
if PROGRAMS is not None:
    import psycopg


WORDS = "plum pear sailing sailed harbour harbours Kiel-Canal naïve 東京都 設定 snake_case HTTPServer über don't".split()
TAGS = ("fruit", "status/done", "Ann Lee", "trip")
QUESTIONS = [
    "plum",
    "sailing to the harbour",
    "who sailed to a harbour of harbours when sailing",
    '"plum pear"',
    "東京",
    "snake case server",
    "-plum harbour",
    "tag:fruit pear",
    "zurich",
]


ENGINES = {"postgresql": running}
"""What gives the address (`index.engine`) of a further engine, while it runs."""


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with ENGINES[request.param]() as url:
        yield url


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running() as url:
        yield url


def _scores_by_path(found: Matches, scores: NoteScores) -> list[tuple[str, float]]:
    return sorted((found.paths[note], round(score, 6)) for note, score in scores.items())


class Both:
    """One vault, and a store of the sidecar and of an engine on it."""

    def __init__(self, root: Path, url: str) -> None:
        self.root, self.url = root, url
        self.sidecar, self.engine = EnhancedStore(root), self.opened()

    def opened(self) -> EnhancedStore:
        return EnhancedStore(self.root, Settings.model_validate({"index": {"engine": self.url}}))

    def close(self) -> None:
        self.sidecar.close()
        self.engine.close()

    def each(self) -> list[EnhancedStore]:
        for store in (self.sidecar, self.engine):
            store.sync()
        return [self.sidecar, self.engine]

    def alike(self, chance: random.Random) -> None:
        """Every question has one answer, each leg by itself."""
        narrows = [
            IndexFilter(), IndexFilter(tags={"fruit": "", "trip": ""}), IndexFilter(tags={"fruit": "", "trip": ""}, require_all=True),
            IndexFilter(prefix="a/"), IndexFilter(phrases=("plum pear",)), IndexFilter(without=("harbour",)), IndexFilter(type="person"),
            IndexFilter(properties={"rank": "3"}), IndexFilter(only=("a/n1.md", "n2.md")), IndexFilter(link_to="n2.md"),
            IndexFilter(author="human"), IndexFilter(since="2026-01-02", until="2026-01-09"), IndexFilter(hidden=True),
        ]  # fmt: skip
        picked = chance.sample(WORDS, 4)
        terms = [
            Term((picked[0],)),
            Term(tuple(picked[1:3])),
            Term((picked[3][:3],), beginning=True),
        ]
        terms += [Term(("sailing",)), Term(("sailed",))]  # two forms of one word count twice
        for narrow in narrows:
            asked = IndexQuery(
                tuple(terms), (Term(tuple(picked[:2])),), title=picked[0], narrow=narrow
            )
            legs = [self._legs(store, asked) for store in (self.sidecar, self.engine)]
            assert legs[0] == legs[1], (narrow, terms)
        for ask in (
            lambda store: store._parts.index.vocabulary([terms, terms[:1]])[0],
            lambda store: [
                row.path
                for row in store._parts.index.page(IndexFilter(hidden=True), "title", 50).rows
            ],
            lambda store: (
                sorted(store._parts.index.links(), key=str)
                and [each[1:] for each in store._parts.index.links()]
            ),
            lambda store: store._parts.index.find_by_name("n2"),
            lambda store: store._parts.index.complete_name("n", 5, ["a/"]),
            lambda store: store._parts.index.tag_counts(),
            lambda store: store._parts.index.inspection(),
            lambda store: store._parts.index.counts(),
            lambda store: [self._hits(store, question) for question in QUESTIONS],
            lambda store: store._parts.index.compounds(picked[0][1:], 4),
            lambda store: [
                similar._replace(paths=sorted(similar.paths))
                for word in ("saililng", "habrour", picked[0][:-1] + "x")
                for similar in store._parts.index.similar_terms(word, 2, IndexFilter())
            ],
        ):
            answers: list[Any] = [ask(store) for store in (self.sidecar, self.engine)]
            assert answers[0] == answers[1]

    @staticmethod
    def _hits(store: EnhancedStore, question: str) -> list[tuple[str, float, int]]:
        hits = store.search(question, limit=10).hits
        return sorted((hit.name, round(hit.score, 6), hit.line) for hit in hits)

    @staticmethod
    def _legs(store: EnhancedStore, question: IndexQuery) -> list[Any]:
        found = store._parts.index.ask(question)
        blocks: list[Match] = []
        if found.blocks is not None:
            rows = zip(*(column.tolist() for column in found.blocks[:3]), strict=True)
            blocks = [Match(*row) for row in rows]
        return [
            _scores_by_path(found, found.notes),
            sorted(
                (found.paths[block.note], block.place & 0xFFFFF, round(block.score, 6))
                for block in blocks
            ),
            _scores_by_path(found, found.pairs),
            found.passed,
            sorted(found.paths[note] for note in found.title_matches if note in found.paths),
        ]

    def as_made_anew(self) -> None:
        assert differences_from_rebuilt(self.engine) == []


@pytest.fixture
def contract(tmp_path: Path, engine: str) -> Iterator[Both]:
    made = Both(tmp_path, engine)
    yield made
    made.close()


@pytest.fixture
def both(tmp_path: Path, server: str) -> Iterator[Both]:
    made = Both(tmp_path, server)
    yield made
    made.close()


def text(chance: random.Random) -> str:
    paragraphs = (
        " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))
        for _ in range(chance.randint(1, 4))
    )
    kind, tags = chance.choice(("person", "memory")), ", ".join(chance.sample(TAGS, 2))
    head = f"---\ntags: [{tags}]\nrank: {chance.randint(1, 4)}\ntype: {kind}\n---\n"
    links = f"\n[[n{chance.randint(0, 6)}]] and ![[pic.png]]\n"
    return (
        chance.choice((head, ""))
        + "# Plum\n\n"
        + "\n\n".join(paragraphs)
        + chance.choice((links, ""))
    )


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
)
def test_any_sequence_of_changes_is_answered_alike(contract: Both, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        for _ in range(8):
            name = f"{chance.choice(('', 'a/', 'b/'))}n{chance.randint(0, 6)}"
            store = chance.choice((contract.sidecar, contract.engine))
            try:
                match chance.choice(
                    ("create", "create", "append", "move", "delete", "by hand", "file")
                ):
                    case "create":
                        store.create(name, text(chance), overwrite=True)
                    case "append":
                        store.update(
                            name, append=f"\n{chance.choice(WORDS)} {chance.choice(WORDS)}\n"
                        )
                    case "move":
                        store.move(name, f"{chance.choice(('', 'a/'))}n{chance.randint(0, 6)}")
                    case "delete":
                        store.delete(name)
                    case "by hand":
                        file = contract.root / f"{name}.md"
                        file.parent.mkdir(exist_ok=True)
                        file.write_text(text(chance), encoding="utf-8")
                    case "file":
                        (contract.root / "pic.png").write_bytes(b"picture")
            except SimplememError:
                pass  # a note that is not there, or is
        contract.each()
        contract.alike(chance)
    contract.as_made_anew()


@pytest.mark.slow
def test_what_notes_say_is_found_alike_in_a_vault_that_people_wrote(
    tmp_path: Path, engine: str
) -> None:
    example = Path(__file__).parents[3] / "vault-example"
    shutil.copytree(
        example, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".simplemem")
    )
    said = {
        line.strip()
        for file in tmp_path.rglob("*.md")
        for line in file.read_text("utf-8").splitlines()
        if len(line) > 30
    }
    both = Both(tmp_path, engine)
    sidecar, other = both.each()
    for question in random.Random(7).sample(sorted(said), 24):
        for mode in ("text", "semantic", "hybrid"):
            hits = [store.search(question, limit=10, mode=mode).hits for store in (sidecar, other)]
            one, two = ([(hit.name, round(hit.score, 6)) for hit in some] for some in hits)
            assert one == two, (mode, question)
    both.close()


def test_a_stem_weighs_no_more_than_its_word_in_either_engine(contract: Both) -> None:
    for k in range(40):
        text = f"We tag it in project {k} before the meeting and after it, as the plan for the budget says."
        contract.sidecar.create(f"english/n{k}", text)
    contract.sidecar.create(
        "eins", "Der Tag war lang, und wir haben über das Haus und die Reise gesprochen."
    )
    contract.sidecar.create(
        "zwei", "Die Tage waren lang, und wir haben über das Project und das Meeting gesprochen."
    )
    stores = contract.each()
    for question in ("tag", "project meeting", "tag meeting", "die Tage", "langer Tag im Haus"):
        hits = [contract._hits(store, question) for store in stores]
        assert hits[0] == hits[1], question
    for question in ("tag", "project meeting", "tag meeting"):
        for store in stores:
            names = [hit.name for hit in store.search(question, limit=30, mode="text").hits]
            assert not {"eins", "zwei"}.intersection(names[:20]), (store.root, question)


def test_names_and_aliases_are_found_alike(contract: Both) -> None:
    contract.sidecar.create(
        "plugins/variables", "Controls for themes.", {"aliases": ["Style Settings", "Straße 1.1"]}
    )
    contract.sidecar.create(
        "style-settings-of-a-theme", "Style settings, style settings and style settings."
    )
    for k in range(12):
        contract.sidecar.create(f"themes/n{k}", f"Style settings and style settings of theme {k}.")
    stores = contract.each()
    for question in (
        "Style Settings",
        "style-settings",
        "strasse 1.1",
        "what are the style settings of themes",
    ):
        hits = [contract._hits(store, question) for store in stores]
        assert hits[0] == hits[1], question
    for question in ("STYLE SETTINGS", "StyleSettings", "Strasse 1.1"):
        for store in stores:
            assert store.search(question, limit=1).hits[0].name == "plugins/variables"
    contract.sidecar.update("plugins/variables", metadata={"aliases": ["Looks"]})
    for store in contract.each():
        assert store.search("Looks", limit=1).hits[0].name == "plugins/variables"
        assert store.search("StyleSettings", limit=1).hits[0].name != "plugins/variables"
    contract.as_made_anew()


def test_text_of_many_notes_is_told_alike(contract: Both) -> None:
    for k in range(30):
        footer = f"[Edit in GitHub](https://github.dev/n{k}.md) | [Copy this note](https://raw.example/n{k}.md)"
        contract.sidecar.create(
            f"plugins/n{k}", f"# Plugin {k}\n\nShows {WORDS[k % 14]} beside a vault.\n\n{footer}\n"
        )
    own = "Press the pencil to edit the text in GitHub, and wait for someone to look at it before readers see it."
    contract.sidecar.create("guide", own)
    stores = contract.each()
    for question in ("edit in GitHub", "github", "plum beside a vault", "copy this note"):
        hits = [store.search(question, limit=10).hits for store in stores]
        one, two = ([(hit.name, round(hit.score, 6), hit.snippet) for hit in some] for some in hits)
        assert sorted(one) == sorted(two), question
    for store in stores:
        assert store.search("edit in GitHub", limit=1).hits[0].name == "guide"
    contract.as_made_anew()


def test_words_that_were_merged_count_as_before(both: Both) -> None:
    chance = random.Random(1)
    for k in range(60):  # a segment each
        both.engine.create(f"c/n{k % 40}", text(chance), overwrite=True)
    both.each()
    database = both.engine._parts.index.database
    with database.reading() as db:
        assert term_index(db).sizes.notes == 40
    assert database.rows("SELECT count(*) FROM segments")[0][0] < 40
    both.alike(chance)


def test_a_rebuild_takes_the_place_of_what_another_server_uses(contract: Both) -> None:
    contract.engine.create("n1", "plum")
    other = contract.opened()
    contract.engine.sync(rebuild=True)
    assert [hit.name for hit in other.search("plum").hits] == ["n1"]
    other.create("n2", "plum pear")
    assert {hit.name for hit in contract.engine.search("plum").hits} == {"n1", "n2"}
    other.close()


def test_a_rebuild_that_fails_leaves_no_schema(both: Both) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    both.engine.create("n1", "plum")
    with pytest.raises(KeyboardInterrupt):
        both.engine.sync(rebuild=True, progress=stop)
    with psycopg.connect(both.url, autocommit=True) as db:
        sql = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%\\_new\\_%'"
        assert db.execute(sql).fetchone() == (0,)
    assert [hit.name for hit in both.engine.search("plum").hits] == ["n1"]


def test_another_log_in_its_place_is_read_anew(contract: Both) -> None:
    for name in ("n1", "n2"):
        contract.engine.create(name, "plum")
    assert [[change.name for change in store.history()] for store in contract.each()] == [
        ["n2", "n1"]
    ] * 2
    log = contract.root / ".simplemem/history/log.jsonl"
    log.write_bytes(log.read_bytes().partition(b"\n")[2])
    assert [[change.name for change in store.history()] for store in contract.each()] == [
        ["n2"]
    ] * 2


def test_a_schema_that_was_dropped_comes_back(both: Both) -> None:
    both.engine.create("n1", "plum")
    with psycopg.connect(both.url, autocommit=True) as db:
        db.execute(f"DROP SCHEMA {both.engine._parts.index.database.schema} CASCADE")  # type: ignore[attr-defined]
    assert [hit.name for hit in both.engine.search("plum").hits] == ["n1"]


def test_a_search_reads_the_places_of_its_hits_alone(both: Both) -> None:
    """A range is thought to hold a ninth of a table: of a large one all was read, with 100,000 notes for two seconds."""
    database = both.engine._parts.index.database
    for k in range(12):
        both.engine.create(f"n{k}", f"plum number {k}")
    with database.writing() as db:
        db.execute(
            "INSERT INTO places SELECT 1::bigint << 40 | i, 0, 1, 1, '[]' FROM generate_series(1, 20000) i"
        )
        db.execute("ANALYZE places")

    def read() -> int:
        database.rows("SELECT pg_stat_force_next_flush()")
        sql = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relid = 'places'::regclass"
        return int(database.rows(sql)[0][0])

    database.rows("SET enable_sort = off")  # as with millions of places, where sorting seems dear
    before = read()
    assert len(both.engine.search("plum", limit=12).hits) == 12
    assert read() - before < 1000


def test_a_connection_that_is_cut_is_made_again(both: Both) -> None:
    both.engine.create("n1", "plum")
    with psycopg.connect(both.url, autocommit=True) as db:
        others = "pid <> pg_backend_pid() AND datname = 'postgres'"
        db.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}".encode()
        )
    assert [hit.name for hit in both.engine.search("plum").hits] == ["n1"]


def test_two_stores_write_at_once_and_both_are_found(contract: Both) -> None:
    import threading

    other = contract.opened()

    def many(store: EnhancedStore, name: str) -> None:
        for k in range(20):
            store.create(f"{name}{k}", f"plum {name} number {k}")

    threads = [
        threading.Thread(target=many, args=each) for each in ((contract.engine, "x"), (other, "y"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert contract.engine.stats()["notes"] == other.stats()["notes"] == 40
    other.close()
    contract.as_made_anew()


def test_lists_are_bound_alike_in_both_engines(contract: Both) -> None:
    """What a dialect returns selects the same rows in each: integers, texts, empty lists, ranges."""
    for name in ("apple", "pear", "plum"):
        (contract.root / f"{name}.md").write_text(f"The {name} ripens.\n")
    answers = []
    for store in (contract.sidecar, contract.engine):
        store.sync()
        with store._parts.index.database.reading() as db:
            dialect = db.dialect
            path_of = dict(db.execute("SELECT id, path FROM notes"))
            texts = ["plum.md", "apple.md", "none.md", "it's $1"]

            def select(condition: str, values: object, db: Connection = db) -> list[DatabaseRow]:
                sql = f"SELECT path FROM notes WHERE {condition} ORDER BY path"
                return db.execute(sql, (values,)).fetchall()  # type: ignore[arg-type]

            source = dialect.rows_for_each_integer(
                "$1", "n", "places p", "p.id >= n.value << 20 AND p.id < (n.value + 1) << 20"
            )
            places = db.execute(f"SELECT p.id FROM {source} ORDER BY p.id", (IntegerList(path_of),))
            values = db.execute(
                f"SELECT t.value FROM {dialect.texts('$1', 't')} ORDER BY 1", (TextList(texts),)
            )
            answers.append(
                [
                    select(dialect.in_texts("path", "$1"), TextList(texts)),
                    select(dialect.in_texts("path", "$1"), TextList(())),
                    select(f"NOT ({dialect.in_texts('path', '$1')})", TextList(texts)),
                    select(dialect.in_integers("id", "$1"), IntegerList(list(path_of)[:2])),
                    select(dialect.in_integers("id", "$1"), IntegerList(())),
                    [(path_of[place >> 20], place & 0xFFFFF) for (place,) in places],
                    values.fetchall(),
                ]
            )
    assert answers[0] == answers[1]
    assert [len(answer) for answer in answers[0]][:5] == [2, 0, 1, 2, 0]


def test_a_note_that_simplemem_created_is_no_conflict_copy_there_either(contract: Both) -> None:
    lines = "".join(f"Every week we look at point {number} of the list.\n" for number in range(12))
    (contract.root / "Weekly.md").write_text(lines)
    (contract.root / "Weekly 2.md").write_text(f"{lines}A synchroniser made this.\n")
    contract.engine.sync()
    contract.engine.create("Weekly 4", f"{lines}The zebra is new.\n")
    contract.sidecar.sync()
    for store in (contract.sidecar, contract.engine):
        assert [each.name for each in store.conflict_copies()] == ["Weekly 2"]
        assert {hit.name for hit in store.search("zebra list", limit=9).hits} == {
            "Weekly",
            "Weekly 4",
        }
    contract.as_made_anew()
