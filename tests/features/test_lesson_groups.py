"""Groups of lessons at the default setting, on 60 lessons about 12 subjects of a software team."""

from __future__ import annotations

from simplemem.features.lessons.analysis import analysis_of
from simplemem.features.lessons.service import lesson_service
from simplemem.store import EnhancedStore

LESSONS = {
    "database": [
        "Postgres connections run out when each worker opens its own pool.",
        "Put pgbouncer between the workers and Postgres so connections are shared.",
        "Postgres vacuum must run nightly on the orders table, or its indexes bloat.",
        "Add Postgres indexes concurrently, otherwise writes to the table are locked.",
        "A long Postgres transaction blocks vacuum and the table grows.",
    ],
    "builds": [
        "CI builds are slow because the Docker layer cache is not restored.",
        "Order the Dockerfile so that dependencies are copied before the source; the Docker layer cache then holds in CI.",
        "Flaky browser tests in CI are retried twice at most.",
        "Run the browser tests in CI against a built bundle, not the development server.",
        "CI secrets are only available to builds of protected branches.",
    ],
    "design": [
        "The checkout button was hidden on small phones because of a fixed footer.",
        "Use safe-area insets for the fixed footer on phones with a notch.",
        "Dark mode colours come from CSS variables, never from hex values in components.",
        "CSS variables for colours are defined once, on the root element.",
        "Grid layout of the product page breaks with long German words; set min-width to zero.",
    ],
    "login": [
        "Access tokens expire after ten minutes; refresh tokens rotate at each login.",
        "Refresh token reuse means theft: revoke the whole token family.",
        "Login with single sign-on failed because the clock of the server was off by five minutes.",
        "Session cookies need SameSite=Lax or the single sign-on redirect loses the login.",
        "Passwords are hashed with argon2id, 64 MB of memory.",
    ],
    "mail": [
        "Newsletters landed in spam because DKIM was not set up for the new domain.",
        "Send newsletters from a separate subdomain so that spam complaints spare invoices.",
        "Bounced email addresses are removed from newsletters after three bounces.",
        "The email template breaks in Outlook if tables have no explicit width.",
        "Invoices by email have the PDF attached, not linked.",
    ],
    "cluster": [
        "Pods were killed for memory because the JVM ignores the container limit in version 8.",
        "Set memory requests equal to limits for the pods of the search service.",
        "Kubernetes readiness probes must not call the database, or all pods drop at once.",
        "Rolling deployments in Kubernetes need maxUnavailable zero for the payment pods.",
        "Helm upgrades hang when a hook job of the chart fails; use --atomic.",
    ],
    "payments": [
        "Stripe webhooks arrive twice; make the handler idempotent by event id.",
        "Verify the signature of Stripe webhooks with the raw body, before JSON parsing.",
        "Refunds in Stripe take up to ten days, tell the customer.",
        "Amounts of payments are stored in cents as integers, never as floats.",
        "Payments in Japanese yen have no cents.",
    ],
    "models": [
        "The recommendation model was trained with data from after the split, so the metrics were too good.",
        "Split training data for the recommendation model by time, not at random.",
        "Embeddings for search are computed in batches of 64 on the GPU.",
        "GPU memory runs out with batches of 256 embeddings.",
        "Retrain the recommendation model monthly; weekly gave no gain.",
    ],
    "team": [
        "Code reviews over 400 lines find few bugs; split the pull request.",
        "Pull requests need one review, two for migrations.",
        "Write the reason of a change in the pull request description.",
        "Retrospectives work better with written notes beforehand.",
        "New colleagues deploy a small change on their first day.",
    ],
    "mobile": [
        "The Android app lost uploads when the system killed the background service; use WorkManager.",
        "iOS push notifications need a new certificate each year in March.",
        "Push notifications on Android are grouped per conversation.",
        "The app store review rejected the iOS app for missing account deletion.",
        "Offline edits in the mobile app are merged by field, the last writer wins.",
    ],
    "logs": [
        "Logs without request ids cannot be joined across services.",
        "Log personal data never; mask email addresses in the logger.",
        "Alerts page a person only if a customer notices the failure.",
        "Alert on the error budget, not on CPU.",
        "Traces are sampled at five percent, errors always.",
    ],
    "other": [
        "Dates from the CRM export are in American order.",
        "The office printer needs the driver from 2019.",
        "Use UTC in the database and convert at the edge.",
        "Daylight saving time doubled the nightly job; schedule it in UTC.",
        "The vendor's API limits us to 30 requests per minute.",
    ],
}


def test_groups_of_a_varied_vault_are_about_one_subject_and_named(store: EnhancedStore) -> None:
    service = lesson_service(store)
    for texts in LESSONS.values():
        for text in texts:
            service.save("insight", text)
    store.sync()

    subject_of = {text: subject for subject, texts in LESSONS.items() for text in texts}
    themes = analysis_of(store).themes()
    assert len(themes) >= 12
    assert all(theme.words for theme in themes)
    pure = [
        theme
        for theme in themes
        if len({subject_of[lesson.content] for lesson in theme.members}) == 1
    ]
    assert len(pure) >= 0.75 * len(themes)
