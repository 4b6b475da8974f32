"""Texts with a secret each, in the forms that services document. They are not taken from patterns.

Three sets of 41, and what was missed of two more, which other writers made. The secrets are drawn with a seed, so that no file holds what looks like one.
"""

import base64
import random
import string

R = random.Random(20261126)
AN = string.ascii_letters + string.digits
BASE32 = string.ascii_uppercase + "234567"


def drawn(letters, n):
    return "".join(R.choice(letters) for _ in range(n))


def an(n):
    return drawn(AN, n)


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


def pem(kind):
    body = "\n".join(b64(48) for _ in range(6))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


TEXTS = []
"""Kind, text and secret."""


def t(kind, text, secret):
    TEXTS.append((kind, text.replace("@@", secret), secret))


# The first set

t(
    "GitHub classic token",
    "fatal: could not read from https://github.com: remote said token @@ has no scope repo",
    "ghp_" + an(36),
)
t(
    "GitHub fine-grained token",
    "GITHUB_PAT=@@ python train.py failed with exit code 1",
    "github_pat_" + an(22) + "_" + an(59),
)
t(
    "GitHub app token",
    "curl -H 'Authorization: token @@' https://api.github.com/user returned 401",
    "ghs_" + an(36),
)
t(
    "GitLab token",
    "pip install --index-url https://__token__:@@@gitlab.com/api/v4/projects/7/packages/pypi/simple torch",
    "glpat-" + an(20),
)
t(
    "GitLab runner token",
    "ERROR: Registering runner... forbidden (check registration token) @@",
    "glrt-" + an(20),
)
t(
    "Slack bot token",
    "slack_sdk.errors.SlackApiError: token @@ was revoked",
    "xoxb-" + dg(12) + "-" + dg(12) + "-" + an(24),
)
t(
    "Slack webhook",
    "requests.post('https://hooks.slack.com/services/@@', json=body) raised ConnectionError",
    f"T{up(8)}/B{up(8)}/{an(24)}",
)
t(
    "Stripe secret key",
    "stripe.error.AuthenticationError: Invalid API Key provided: @@",
    "sk_live_" + an(24),
)
t("Twilio token", "TWILIO_ACCOUNT_SID=AC" + hx(32) + "\nTWILIO_AUTH_TOKEN=@@", hx(32))
t(
    "SendGrid key",
    "python_http_client.exceptions.UnauthorizedError with key @@ on import",
    "SG." + b64u(16) + "." + b64u(32),
)
t("npm token", "//registry.npmjs.org/:_authToken=@@", "npm_" + an(36))
t("PyPI token", "twine upload -u __token__ -p @@ dist/*", "pypi-AgEIcHlwaS5vcmc" + b64u(110))
t(
    "Hugging Face token",
    "OSError: You are trying to access a gated repo with token @@.",
    "hf_" + drawn(string.ascii_letters, 34),
)
t(
    "OpenAI key",
    "openai.AuthenticationError: Error code: 401 - Incorrect API key provided: @@.",
    "sk-proj-" + an(48),
)
t(
    "Anthropic key",
    "client = anthropic.Anthropic(api_key='@@')",
    "sk-ant-api03-" + b64u(69) + "-" + b64u(4) + "AA",
)
t(
    "Google API key",
    "googleapiclient: https://maps.googleapis.com/maps/api/geocode/json?address=x&key=@@ gave 403",
    "AIza" + b64u(26),
)
t(
    "Google OAuth client secret",
    '{"client_id":"1.apps.googleusercontent.com","client_secret":"@@"}',
    "GOCSPX-" + b64u(21),
)
t(
    "Google service account",
    '{"type": "service_account", "private_key": "@@"}',
    pem("PRIVATE KEY").replace("\n", "\\n"),
)
t(
    "Azure storage key",
    "DefaultEndpointsProtocol=https;AccountName=lab;AccountKey=@@;EndpointSuffix=core.windows.net",
    b64(64),
)
t(
    "Azure client secret",
    "az login --service-principal -u " + uuid() + " -p @@ --tenant " + uuid(),
    an(3) + "8Q~" + an(34),
)
t(
    "Azure SAS",
    "https://lab.blob.core.windows.net/c/w.bin?sv=2022-11-02&sp=r&sig=@@",
    b64(32).replace("+", "%2B").replace("=", "%3D").replace("/", "%2F"),
)
t(
    "AWS access key id",
    "botocore.exceptions.ClientError: The AWS Access Key Id @@ does not exist in our records",
    "AKIA" + up(16),
)
t("AWS secret key", "aws_secret_access_key = @@\nregion = eu-west-1", b64(30))
t("AWS session token", "export AWS_SESSION_TOKEN=@@", "FwoGZXIvYXdzE" + b64(120))
t("Databricks token", "databricks.sdk.errors: token @@ expired", "dapi" + hx(32))
t("DigitalOcean token", "doctl auth init -t @@", "dop_v1_" + hx(64))
t(
    "OpenSSH private key",
    "Load key: invalid format\n@@\nPermission denied",
    pem("OPENSSH PRIVATE KEY"),
)
t("PGP private key", "gpg: error reading\n@@\n", pem("PGP PRIVATE KEY BLOCK"))
t(
    "URL with a password of a database",
    "sqlalchemy.exc.OperationalError: postgresql+psycopg2://trainer:@@@db.lab.internal:5432/runs",
    an(12),
)
t(
    "URL with a password of redis",
    "redis.exceptions.ConnectionError: redis://:@@@10.1.2.3:6379/0",
    an(16),
)
t("cookie", "> Cookie: sessionid=@@; csrftoken=" + an(32), an(32))
t(
    "bearer token",
    "DEBUG:urllib3: Authorization: Bearer @@",
    "eyJ" + b64u(20) + ".eyJ" + b64u(60) + "." + b64u(32),
)
t("basic authorization", "proxy sent: Proxy-Authorization: Basic @@", b64(18))
t(
    "environment dump",
    "SHELL=/bin/bash\nLAB_DB_PASSWORD=@@\nPATH=/usr/bin\nLANG=C\nTERM=xterm\n",
    "tulip" + dg(4) + "Moon",
)
t(
    "home folder on Linux",
    'FileNotFoundError: [Errno 2] No such file or directory: "/home/@@/exp/data.npy"',
    "mschneider",
)
t(
    "home folder on macOS",
    "ImportError: dlopen(/Users/@@/Library/Python/3.11/lib/x.so, 0x0002)",
    "janet.wu",
)
t(
    "home folder on Windows",
    r"File C:\Users\@@\AppData\Local\Programs\Python\python311.dll not found",
    "Tomasz",
)
t(
    "host name",
    "ssh: connect to host @@ port 22: Connection timed out",
    "gpu-a100-04.cluster.uni-kassel.de",
)
t("e-mail address", "Author: Ines Prado <@@>", "ines.prado@labs.example-institute.org")
t("user at host", "scp weights.pt @@:/scratch/", "rkumar@login2")
t("address on the network", "torch.distributed: connect() to [@@]:29500 failed", "172.21.40.17")

# The second set

t("GitHub OAuth token", "{'Authorization': 'token @@', 'Accept': '*/*'}", "gho_" + an(36))
t("GitHub refresh token", "refresh_token: @@  # expires 2026", "ghr_" + an(76))
t(
    "GitHub token in a URL",
    "git clone https://x-access-token:@@@github.com/lab/private.git",
    "ghs_" + an(36),
)
t("GitLab deploy token", "docker login registry.gitlab.com -u bot -p @@", "gldt-" + an(20))
t("GitLab job token", "CI_JOB_TOKEN=@@", "glcbt-64_" + an(20))
t(
    "Slack user token",
    'headers={"Authorization": "Bearer @@"}',
    "xoxp-" + "-".join(dg(12) for _ in range(3)) + "-" + hx(32),
)
t("Slack app token", "SLACK_APP_TOKEN: '@@'", "xapp-1-A" + up(10) + "-" + dg(13) + "-" + hx(64))
t("Stripe restricted key", 'stripe.api_key = "@@"', "rk_live_" + an(24))
t("Stripe webhook secret", "Webhook.construct_event(payload, sig, '@@')", "whsec_" + an(32))
t("Twilio API key", "Client('@@', secret)", "SK" + hx(32))
t("Mailgun key", "auth=('api', '@@')", "key-" + hx(32))
t("npm legacy token", '_authToken = "@@"', f"{hx(8)}-{hx(4)}-4{hx(3)}-b{hx(3)}-{hx(12)}")
t(
    "PyPI token in pypirc",
    "[pypi]\nusername = __token__\npassword = @@\n",
    "pypi-AgEIcHlwaS5vcmc" + b64u(100),
)
t("Hugging Face token in code", "login(token='@@', add_to_git_credential=True)", "hf_" + an(34))
t("Weights and Biases key", "WANDB_API_KEY=@@ wandb sync run-1", hx(40))
t("OpenAI legacy key", "openai.api_key='@@'", "sk-" + an(20) + "T3BlbkFJ" + an(20))
t(
    "Anthropic key in YAML",
    "env:\n  ANTHROPIC_API_KEY: @@\n",
    "sk-ant-api03-" + b64u(69) + "-" + b64u(4) + "AA",
)
t(
    "Google access token",
    "google.auth.exceptions.RefreshError: token @@ is stale",
    "ya29.a0A" + b64u(90),
)
t("Google refresh token", '"refresh_token": "1//0@@"', b64u(60))
t("Azure DevOps token", "git -c http.extraheader='Authorization: Basic @@' fetch", b64(39))
t(
    "Azure service bus",
    "Endpoint=sb://lab.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=@@",
    b64(32),
)
t("Azure storage key in Python", "BlobServiceClient(url, credential='@@')", b64(64))
t("AWS temporary key id", "credentials: {'aws_access_key_id': '@@'}", "ASIA" + up(16))
t("AWS secret in a repr", "Credentials(access_key='AKIA" + up(16) + "', secret_key='@@')", b64(30))
t("AWS secret as flag", "aws configure set aws_secret_access_key @@", b64(30))
t(
    "Databricks token in a profile",
    "[DEFAULT]\nhost = https://x.cloud.databricks.com\ntoken = @@\n",
    "dapi" + hx(32) + "-2",
)
t("DigitalOcean refresh token", "'doo': '@@'", "doo_v1_" + hx(64))
t(
    "EC private key",
    "ValueError: Could not deserialize key data b'@@'",
    pem("EC PRIVATE KEY").replace("\n", "\\n"),
)
t("encrypted private key", "@@", pem("ENCRYPTED PRIVATE KEY"))
t(
    "MongoDB URL",
    "pymongo.errors.OperationFailure: mongodb+srv://reader:@@@cluster0.ab1cd.mongodb.net/?retryWrites=true",
    an(14),
)
t("AMQP URL in JSON", '{"broker_url": "amqp://celery:@@@mq:5672//"}', "p4ss-" + an(8))
t("proxy variable", "https_proxy=http://svc:@@@proxy.corp.example:3128", "Winter" + dg(4))
t("Set-Cookie", "< Set-Cookie: JSESSIONID=@@; Path=/; HttpOnly", hx(32).upper())
t(
    "JSON Web Token",
    "jwt.exceptions.InvalidSignatureError: @@",
    "eyJ" + b64u(20) + ".eyJ" + b64u(60) + "." + b64u(32),
)
t(
    "os.environ",
    "environ({'SHELL': '/bin/sh', 'LAB_SECRET': '@@', 'HOME': '/home/x'})",
    "violet-" + dg(6),
)
t(
    "home folder on Linux, quoted",
    "OSError: cannot load '/home/@@/miniconda3/lib/libcudart.so.12'",
    "yzhang42",
)
t(
    "home folder on Windows, escaped",
    "FileNotFoundError: 'C:\\\\Users\\\\@@\\\\Desktop\\\\x.npy'",
    "lschmidt",
)
t(
    "host name in a log",
    "[rank3]:[W] [c10d] The hostname of the client socket @@ cannot be retrieved",
    "nid003417.hpc.internal-site.ch",
)
t(
    "e-mail in a licence error",
    "LicenseError: registered to @@ (floating)",
    "peter_van.dijk@tudelft.nl",
)
t("prompt of a shell", "@@:~/work$ python conv.py", "mariana@lambda-server")
t(
    "IPv6 address",
    "NCCL WARN socketStartConnect: Connect to @@<45123> failed",
    "fd7a:115c:a1e0:ab12:4843:cd96:6258:1b2c",
)

# The third set

t("GitHub token in a log", "[2026-11-26 10:00] token=@@ user-agent=gh/2.4", "gho_" + an(36))
t("GitHub token in XML", "<server><id>gh</id><password>@@</password></server>", "ghp_" + an(36))
t(
    "GitHub token in a netrc",
    "machine api.github.com login me password @@",
    "github_pat_" + an(22) + "_" + an(59),
)
t("GitLab feed token", "https://gitlab.com/x.atom?feed_token=@@", "glft-" + an(20))
t("GitLab trigger token", "curl -F token=@@ -F ref=main", "glptt-" + hx(40))
t("Slack legacy token", "token: @@,", "xoxs-" + dg(11) + "-" + dg(11) + "-" + an(24))
t("Slack configuration token", "slack: @@", "xoxe.xoxp-1-" + an(160))
t("Stripe test key", "STRIPE_KEY is @@ here", "sk_test_" + an(24))
t("Twilio basic", "curl -u AC" + hx(32) + ":@@ https://api.twilio.com", hx(32))
t("SendGrid in JSON", '{"sendgrid": {"key": "@@"}}', "SG." + b64u(16) + "." + b64u(32))
t("npm in a Dockerfile", "RUN echo '//registry.npmjs.org/:_authToken=@@' > .npmrc", "npm_" + an(36))
t("PyPI in an environment", "TWINE_PASSWORD='@@'", "pypi-AgENdGVzdC5weXBpLm9yZw" + b64u(100))
t("Hugging Face in a URL", "https://user:@@@huggingface.co/lab/model", "hf_" + an(34))
t("OpenAI service account", "Bearer @@", "sk-svcacct-" + an(60))
t("Anthropic admin key", "x-api-key: @@", "sk-ant-admin01-" + b64u(69) + "-" + b64u(4) + "AA")
t("Groq key", "GROQ_API_KEY=@@", "gsk_" + an(52))
t(
    "Google key in an error",
    "API key not valid: @@. Please pass a valid API key.",
    "AIza" + b64u(26),
)
t("Firebase server key", "Authorization: key=@@", "AAAA" + b64u(5) + ":APA91b" + b64u(100))
t("Azure OpenAI key", "AZURE_OPENAI_KEY: @@", hx(32))
t(
    "Azure connection string of Cosmos",
    "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=@@;",
    b64(64),
)
t("Azure registry password", "docker login lab.azurecr.io -u lab --password @@", b64(39))
t(
    "AWS key id in a URL",
    "https://b.s3.amazonaws.com/k?X-Amz-Credential=@@%2F20261126%2Feu-west-1",
    "AKIA" + up(16),
)
t("AWS signature in a URL", "...&X-Amz-Signature=@@", hx(64))
t("AWS secret in JSON", '"SecretAccessKey": "@@",', b64(30))
t("AWS secret in TOML", 'secret_key = "@@"', b64(30))
t("Databricks in JDBC", "jdbc:databricks://h:443;UID=token;PWD=@@", "dapi" + hx(32))
t("DigitalOcean spaces", "SPACES_SECRET=@@", an(43))
t("DSA private key", "key = '''@@'''", pem("DSA PRIVATE KEY"))
t(
    "private key of PuTTY",
    "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: k\nPrivate-Lines: 1\n@@\nPrivate-MAC: "
    + hx(64),
    b64(36),
)
t("MySQL URL", "mysql://root:@@@127.0.0.1/x?charset=utf8", "S3cr" + an(4) + "!")
t("password with an @ in a URL", "ftp://ann:@@@files.example.net/", "pa@ss" + dg(4))
t("cookie in requests", "requests.get(u, cookies={'session': '@@'})", b64u(30))
t("cookie of Jupyter", "http://localhost:8888/lab?token=@@", hx(48))
t("env of docker", "docker run -e DB_PASS=@@ image", "maple" + dg(3) + "x")
t("Python environment", "os.environ['MYSQL_PWD'] = '@@'", "birch_" + dg(3))
t("home on NFS", "OSError: /nfs/home/@@/venv/bin/python: bad interpreter", "olindqvist")
t("home in WSL", "cannot open /mnt/c/Users/@@/code/x.py", "Brigitte")
t("host in NCCL", "ip-10-3-4-5: NCCL INFO Bootstrap : Using eth0:@@<0>", "10.3.4.5")
t("host in MPI", "mpirun was unable to launch on node @@", "c14-07.prod.lan")
t("mail in git", "commit 12\nAuthor: K <@@>\n", "12345+kw@users.noreply.github.com")
t("IPv6 link", "bind to @@%eth0 failed", "fe80::1ff:fe23:4567:890a")
t("login of Weights & Biases", "$ wandb login --relogin @@", hx(40))
t("key of Kaggle", 'config={"username":"tomasz","key":"@@"} of kaggle.json', hx(32))
t(
    "URL of a Telegram bot",
    "Max retries exceeded with url: /bot@@/sendMessage",
    dg(10) + ":AA" + an(33),
)
t(
    "cookie in quotes",
    r"send: b'GET /api HTTP/1.1\r\nCookie: hub-session=\"@@\"\r\nAccept: */*'",
    "2|1:0|10:" + dg(10) + "|8:username|16:" + b64(12) + "|" + hx(64),
)
t("netrc", "machine artifacts.example.org login mlbuild password @@", an(17))
t("netrc in lines", "machine example.org\n  login svc-ml\n  password @@\n", an(12))
t("password file of PostgreSQL", "db.example.org:5432:mlflow:svc:@@", an(8))
t("sshpass", "sshpass -p @@ ssh node", an(9))
t("mysql", "mysql -h db -p@@ runs", an(8))
t("Windows share", r"OSError: @@\model.onnx is not there", r"\\fileserver7\projects")
