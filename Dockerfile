# Untried: read with care, but no engine has built it.
#
#   docker build -t judgekit .
#   docker run --rm judgekit demo
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" -e OPENAI_API_KEY judgekit run conversations.jsonl -o report.html

FROM python:3.11-slim AS build
WORKDIR /src
RUN pip install --no-cache-dir build==1.6.1
COPY . .
RUN python -m build --wheel --outdir /dist

FROM python:3.11-slim
RUN --mount=type=bind,from=build,source=/dist,target=/dist pip install --no-cache-dir /dist/*.whl
RUN useradd --uid 10001 --create-home judgekit && install --directory --owner=judgekit /data
USER 10001
WORKDIR /data
ENTRYPOINT ["judgekit"]
CMD ["--help"]
