"""Texts with a secret each, in the forms that services document. They are not taken from patterns.

Several writers made them. The secrets are drawn with a seed, so that no file holds what looks like one.
"""

import base64
import random
import string

R = random.Random(20261126)
BASE32 = string.ascii_uppercase + "234567"


def drawn(letters, n):
    return "".join(R.choice(letters) for _ in range(n))


def an(n):
    return drawn(string.ascii_letters + string.digits, n)


def hx(n):
    return drawn("0123456789abcdef", n)


def up(n):
    return drawn(BASE32, n)


def dg(n):
    return drawn(string.digits, n)


def b64(n):
    return base64.b64encode(R.randbytes(n)).decode()


def b64u(n):
    return base64.urlsafe_b64encode(R.randbytes(n)).decode().rstrip("=")


def uuid():
    return f"{hx(8)}-{hx(4)}-4{hx(3)}-a{hx(3)}-{hx(12)}"


def jwt():
    return f"eyJ{b64u(20)}.eyJ{b64u(60)}.{b64u(32)}"


def pem(kind):
    body = "\n".join(b64(48) for _ in range(6))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


OF_SERVICES = [
    ("GitHub", "could not read from https://github.com: remote said token @@ has no scope", "ghp_" + an(36)),
    ("GitHub, fine-grained", "GITHUB_PAT=@@ python train.py failed", "github_pat_" + an(22) + "_" + an(59)),
    ("GitHub, in XML", "<server><id>gh</id><password>@@</password></server>", "ghp_" + an(36)),
    ("GitLab, in a URL", "pip install --index-url https://__token__:@@@gitlab.com/api/v4/simple torch", "glpat-" + an(20)),
    ("GitLab runner", "Registering runner... forbidden (check registration token) @@", "glrt-" + an(20)),
    ("Slack bot", "SlackApiError: token @@ was revoked", "xoxb-" + dg(12) + "-" + dg(12) + "-" + an(24)),
    ("Slack app", "SLACK_APP_TOKEN: '@@'", "xapp-1-A" + up(10) + "-" + dg(13) + "-" + hx(64)),
    ("Slack webhook", "requests.post('https://hooks.slack.com/services/@@', json=body)", f"T{up(8)}/B{up(8)}/{an(24)}"),
    ("Stripe", "AuthenticationError: Invalid API Key provided: @@", "sk_live_" + an(24)),
    ("Twilio", "TWILIO_ACCOUNT_SID=AC" + hx(32) + "\nTWILIO_AUTH_TOKEN=@@", hx(32)),
    ("Twilio API", "Client('@@', secret)", "SK" + hx(32)),
    ("Twilio basic", "curl -u AC" + hx(32) + ":@@ https://api.twilio.com", hx(32)),
    ("SendGrid", "UnauthorizedError with key @@ on import", "SG." + b64u(16) + "." + b64u(32)),
    ("Mailgun", "auth=('api', '@@')", "key-" + hx(32)),
    ("npm", "//registry.npmjs.org/:_authToken=@@", "npm_" + an(36)),
    ("npm, legacy", '_authToken = "@@"', uuid()),
    ("PyPI", "twine upload -u __token__ -p @@ dist/*", "pypi-AgEIcHlwaS5vcmc" + b64u(110)),
    ("Hugging Face", "You are trying to access a gated repo with token @@.", "hf_" + drawn(string.ascii_letters, 34)),
    ("OpenAI", "Error code: 401 - Incorrect API key provided: @@.", "sk-proj-" + an(48)),
    ("Anthropic", "client = anthropic.Anthropic(api_key='@@')", "sk-ant-api03-" + b64u(69) + "-" + b64u(4) + "AA"),
    ("Groq", "GROQ_API_KEY=@@", "gsk_" + an(52)),
    ("Google API", "https://maps.googleapis.com/maps/api/geocode/json?address=x&key=@@ gave 403", "AIza" + b64u(26)),
    ("Google API, in an error", "API key not valid: @@. Please pass a valid API key.", "AIza" + b64u(26)),
    ("Google OAuth", '{"client_id":"1.apps.googleusercontent.com","client_secret":"@@"}', "GOCSPX-" + b64u(21)),
    ("Google service account", '{"type": "service_account", "private_key": "@@"}', pem("PRIVATE KEY").replace("\n", "\\n")),
    ("Firebase", "Authorization: key=@@", "AAAA" + b64u(5) + ":APA91b" + b64u(100)),
    ("Azure storage", "AccountName=lab;AccountKey=@@;EndpointSuffix=core.windows.net", b64(64)),
    ("Azure client", "az login --service-principal -u " + uuid() + " -p @@ --tenant " + uuid(), an(3) + "8Q~" + an(34)),
    ("Azure SAS", "https://lab.blob.core.windows.net/c/w.bin?sv=2022-11-02&sp=r&sig=@@%3D", an(42)),
    ("Azure OpenAI", "AZURE_OPENAI_KEY: @@", hx(32)),
    ("AWS id", "The AWS Access Key Id @@ does not exist in our records", "AKIA" + up(16)),
    ("AWS secret", "aws_secret_access_key = @@\nregion = eu-west-1", b64(30)),
    ("AWS secret as flag", "aws configure set aws_secret_access_key @@", b64(30)),
    ("AWS session", "export AWS_SESSION_TOKEN=@@", "FwoGZXIvYXdzE" + b64(120)),
    ("AWS signature", "...&X-Amz-Signature=@@", hx(64)),
    ("Databricks", "databricks.sdk.errors: token @@ expired", "dapi" + hx(32)),
    ("DigitalOcean", "doctl auth init -t @@", "dop_v1_" + hx(64)),
    ("DigitalOcean refresh", "'doo': '@@'", "doo_v1_" + hx(64)),
    ("Weights & Biases", "$ wandb login --relogin @@", hx(40)),
    ("Kaggle", 'config={"username":"tomasz","key":"@@"} of kaggle.json', hx(32)),
    ("Telegram bot", "Max retries exceeded with url: /bot@@/sendMessage", dg(10) + ":AA" + an(33)),
]  # fmt: skip
"""Kind, text and secret."""

OF_ANYTHING = [
    ("OpenSSH key", "Load key: invalid format\n@@\nPermission denied", pem("OPENSSH PRIVATE KEY")),
    ("PGP key", "gpg: error reading\n@@\n", pem("PGP PRIVATE KEY BLOCK")),
    ("PuTTY key", "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n@@\nPrivate-MAC: " + hx(64), b64(36)),
    ("public key", "authorized_keys: @@\n", "ssh-ed25519 AAAAC3Nz" + b64(36)),
    ("URL of a database", "OperationalError: postgresql+psycopg2://trainer:@@@db.lab.internal:5432/runs", "p/" + an(12)),
    ("URL of redis", "ConnectionError: redis://:@@@10.1.2.3:6379/0", an(16)),
    ("URL and a password with an @", "ftp://ann:@@@files.example.net/", "pa@ss" + dg(4)),
    ("cookie", "> Cookie: sessionid=@@; csrftoken=" + an(32), an(32)),
    ("cookie in requests", "requests.get(u, cookies={'session': '@@'})", b64u(30)),
    ("cookie in quotes", r"send: b'GET /api HTTP/1.1\r\nCookie: hub-session=\"@@\"\r\nAccept: */*'",
     "2|1:0|10:" + dg(10) + "|8:username|16:" + b64(12) + "|" + hx(64)),
    ("bearer", "DEBUG:urllib3: Authorization: Bearer @@", jwt()),
    ("JSON Web Token", "jwt.exceptions.InvalidSignatureError: @@", jwt()),
    ("basic", "proxy sent: Proxy-Authorization: Basic @@", b64(12)),
    ("environment dump", "SHELL=/bin/bash\nMY_THING=@@\nPATH=/usr/bin\nLANG=C\nTERM=xterm\n", "tulip" + dg(4) + "Moon"),
    ("os.environ", "environ({'SHELL': '/bin/sh', 'LAB_SECRET': '@@', 'HOME': '/home/x'})", "violet-" + dg(6)),
    ("variable of Python", "os.environ['MYSQL_PWD'] = '@@'", "birch_" + dg(3)),
    ("variable of docker", "docker run -e DB_PASS=@@ image", "maple" + dg(3) + "x"),
    ("netrc", "machine artifacts.example.org login mlbuild password @@", an(17)),
    ("password file of PostgreSQL", "db.example.org:5432:mlflow:svc:@@", an(8)),
    ("option", "serve --api-key=@@ --port 80", "mapletreelane"),
    ("password of letters", "password = @@\n", "mapletreelane"),
    ("element of XML", '<add key="DbPassword" value="@@"/>', "mapletreelane"),
    ("part of a URL", "https://hooks.example.com/run/@@", hx(24)),
    ("code after capitals", "registered with KEY-@@ here", hx(20)),
    ("sshpass", "sshpass -p @@ ssh node", an(9)),
    ("mysql", "mysql -h db -p@@ runs", an(8)),
]  # fmt: skip

OF_PEOPLE_AND_MACHINES = [
    ("home on Linux", 'No such file or directory: "/home/@@/exp/data.npy"', "mschneider"),
    ("home alone", "cd /home/@@: Permission denied", "mschneider"),
    ("home on macOS", "ImportError: dlopen(/Users/@@/Library/Python/3.11/lib/x.so, 0x0002)", "janet.wu"),
    ("home on Windows", r"File C:\Users\@@\AppData\Local\Programs\Python\python311.dll not found", "Tomasz"),
    ("home on Windows, escaped", r"FileNotFoundError: 'C:\\Users\\@@\\Desktop\\x.npy'", "lschmidt"),
    ("home on a cluster", "cd /lustre/@@ failed", "yolanda"),
    ("home on NFS", "OSError: /nfs/home/@@/venv/bin/python: bad interpreter", "olindqvist"),
    ("share of Windows", r"OSError: @@\model.onnx is not there", r"\\fileserver7\projects"),
    ("host", "ssh: connect to host @@ port 22: Connection timed out", "gpu-a100-04.cluster.uni-kassel.de"),
    ("host of a network", "ssh: connect to @@ port 22", "gpu-node-17.cluster.local"),
    ("host in a log", "[c10d] The hostname of the client socket @@ cannot be retrieved", "nid003417.hpc.internal-site.ch"),
    ("host of a cloud", "launched on @@.ec2.internal", "ip-10-3-7-21"),
    ("mail", "Author: Ines Prado <@@>", "ines.prado@labs.example-institute.org"),
    ("user in a variable", "LOGNAME=@@ python x.py", "zbigniew"),
    ("user at host", "scp weights.pt @@:/scratch/", "rkumar@login2"),
    ("prompt", "@@:~/work$ python conv.py", "mariana@lambda-server"),
    ("address 10", "NCCL INFO Bootstrap : Using eth0:@@<0>", "10.3.4.5"),
    ("address 172", "torch.distributed: connect() to [@@]:29500 failed", "172.21.40.17"),
    ("address 192", "NCCL socket @@<0>", "192.168.14.7"),
    ("IPv6", "NCCL WARN socketStartConnect: Connect to @@<45123> failed", "fd7a:115c:a1e0:ab12:4843:cd96:6258:1b2c"),
    ("IPv6 link", "bind to @@%eth0 failed", "fe80::1ff:fe23:4567:890a"),
]  # fmt: skip

TEXTS = [
    (kind, text.replace("@@", secret), secret)
    for kind, text, secret in (*OF_SERVICES, *OF_ANYTHING, *OF_PEOPLE_AND_MACHINES)
]
