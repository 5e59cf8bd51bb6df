"""Sends a notification by mail."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from email.policy import SMTP

from .failure import NotSent
from .hooks import Hook, Mail
from .message import HookMessage
from .trust import trusted_certificates
from .webhook import read_secret


def send_mail(hook: Hook, message: HookMessage) -> None:
    """Give a mail to the server of a hook. Raises NotSent."""
    mail = hook.mail
    assert mail is not None
    password = None if mail.password_file is None else read_secret(mail.password_file)
    certificates = trusted_certificates(hook)
    try:
        with _connect(mail, hook.timeout, certificates) as connection:
            if mail.tls == "starttls":
                connection.starttls(context=certificates)
            if mail.user is not None and password is not None:
                connection.login(mail.user, password)
            refused = connection.send_message(_mail(mail, message))
    except smtplib.SMTPRecipientsRefused as error:
        raise _refused(error.recipients, is_sent=False) from error
    except smtplib.SMTPResponseException as error:
        # 5xx is the server's last word; a wrong password may be mended, and is tried again.
        is_wrong = isinstance(error, smtplib.SMTPAuthenticationError)
        is_final = error.smtp_code >= 500 and not is_wrong
        raise NotSent(f"The mail server answered {error.smtp_code}.", is_final=is_final) from error
    except smtplib.SMTPNotSupportedError as error:
        raise NotSent("The mail server does not offer what `tls` or `user` needs.") from error
    except (smtplib.SMTPException, OSError, EOFError) as error:
        raise NotSent(f"The mail server: {error or type(error).__name__}.") from error
    if refused:
        raise _refused(refused, is_sent=True)


def _mail(mail: Mail, message: HookMessage) -> EmailMessage:
    """Return the mail. Its Message-ID is the same for each try."""
    email = EmailMessage(policy=SMTP)
    email["Subject"] = message.title
    email["From"] = mail.sender
    email["To"] = ", ".join(mail.to)
    email["Message-ID"] = f"<{message.id}@{mail.sender.rpartition('@')[2]}>"
    email["Auto-Submitted"] = "auto-generated"  # vacation replies stay away
    email.set_content(f"{message.text}\n")
    return email


def _refused(recipients: dict[str, tuple[int, bytes]], *, is_sent: bool) -> NotSent:
    """Return the error of recipients that the server does not take.

    What others have got is not sent again.
    """
    codes = [code for code, _ in recipients.values()]
    addresses = ", ".join(recipients)
    message = f"The mail server refused {addresses} ({', '.join(map(str, codes))})."
    return NotSent(message, is_final=is_sent or all(code >= 500 for code in codes))


def _connect(mail: Mail, timeout: float, certificates: ssl.SSLContext) -> smtplib.SMTP:
    host, port = mail.host_and_port()
    if mail.tls == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=timeout, context=certificates)
    return smtplib.SMTP(host, port, timeout=timeout)
