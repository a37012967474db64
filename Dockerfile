# One image for every role: `docker run IMAGE executor --help`. The tests of a repository run in bubblewrap inside it.
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/*

# The user's own number, so that branches in their repository and files in the shared folder are theirs.
ARG UID=1000

WORKDIR /app
COPY . .
RUN pip install --no-cache-dir . \
    && useradd --create-home --uid ${UID} rolecall \
    && install -d -o rolecall -g rolecall -m 700 /state /shared

USER rolecall
ENV XDG_STATE_HOME=/state PYTHONUNBUFFERED=1
WORKDIR /home/rolecall
ENTRYPOINT ["python", "-m"]
CMD ["rolecall", "--help"]
