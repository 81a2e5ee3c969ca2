// The AWS SDK for JavaScript v3 as it comes: HTTP/2 with prior knowledge, retries and waiters.
// KINESIS_ENDPOINT is a server that was started with --testing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  CreateStreamCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  KinesisClient,
  ListShardsCommand,
  PutRecordsCommand,
  RegisterStreamConsumerCommand,
  ResourceNotFoundException,
  SplitShardCommand,
  SubscribeToShardCommand,
  DescribeStreamSummaryCommand,
  waitUntilStreamExists,
} from "@aws-sdk/client-kinesis";
import { NodeHttpHandler } from "@smithy/node-http-handler";

const endpoint = process.env.KINESIS_ENDPOINT;
const settings = {
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
};
const client = new KinesisClient(settings);
const http1 = new KinesisClient({ ...settings, requestHandler: new NodeHttpHandler() });

before(async () => {
  await client.send(new CreateStreamCommand({ StreamName: "orders", ShardCount: 2 }));
  await waitUntilStreamExists({ client, maxWaitTime: 30 }, { StreamName: "orders" });
});

after(() => {
  client.destroy();
  http1.destroy();
});

async function shards() {
  const found = [];
  let page = await client.send(new ListShardsCommand({ StreamName: "orders", MaxResults: 1 }));
  found.push(...page.Shards);
  while (page.NextToken) {
    page = await client.send(new ListShardsCommand({ NextToken: page.NextToken, MaxResults: 1 }));
    found.push(...page.Shards);
  }
  return found;
}

async function readAll(reader, shardId) {
  const start = { StreamName: "orders", ShardId: shardId, ShardIteratorType: "TRIM_HORIZON" };
  let iterator = (await reader.send(new GetShardIteratorCommand(start))).ShardIterator;
  const records = [];
  for (;;) {
    const page = await reader.send(new GetRecordsCommand({ ShardIterator: iterator }));
    records.push(...page.Records);
    iterator = page.NextShardIterator;
    if (!iterator || page.MillisBehindLatest === 0) return { records, page };
  }
}

async function control(path, method, fields) {
  const answer = await fetch(`${endpoint}/_testing/${path}`, { method, body: JSON.stringify(fields) });
  assert.equal(answer.status, 200);
}

test("records come back byte for byte, over HTTP/2 and HTTP/1.1", async () => {
  const data = Array.from({ length: 500 }, (_, i) => Buffer.concat([Buffer.from([0, 255, i % 256]), Buffer.alloc(2000, i)]));
  const answer = await client.send(
    new PutRecordsCommand({
      StreamName: "orders",
      Records: data.map((bytes, i) => ({ Data: bytes, PartitionKey: `ключ-${i}`, ExplicitHashKey: "0" })),
    }),
  );
  assert.equal(answer.FailedRecordCount, 0);
  assert.equal(answer.Records.length, 500);
  for (const reader of [client, http1]) {
    const { records } = await readAll(reader, "shardId-000000000000");
    assert.deepEqual(records.map((record) => Buffer.from(record.Data)), data);
    assert.equal(records[7].PartitionKey, "ключ-7");
    assert.ok(Math.abs(Date.now() - records[0].ApproximateArrivalTimestamp.getTime()) < 60_000);
  }
});

test("shards are listed in pages", async () => {
  assert.deepEqual((await shards()).map((shard) => shard.ShardId), ["shardId-000000000000", "shardId-000000000001"]);
});

test("an error is an instance of its class", async () => {
  await assert.rejects(
    client.send(new DescribeStreamSummaryCommand({ StreamName: "missing" })),
    (error) => error instanceof ResourceNotFoundException && error.message.includes("missing under account"),
  );
});

test("requests on one connection are answered side by side", async () => {
  const describe = () => client.send(new DescribeStreamSummaryCommand({ StreamName: "orders" }));
  const answers = await Promise.all(Array.from({ length: 15 }, describe));
  assert.ok(answers.every((answer) => answer.StreamDescriptionSummary.StreamName === "orders"));
});

test("the SDK retries an internal failure and a lost connection", async () => {
  for (const kind of ["internal_failure", "drop", "drop_before"]) {
    await control("faults", "POST", { kind, operations: ["DescribeStreamSummary"], times: 1 });
    const answer = await client.send(new DescribeStreamSummaryCommand({ StreamName: "orders" }));
    await control("faults", "DELETE", {});
    assert.equal(answer.StreamDescriptionSummary.OpenShardCount, 2);
    assert.equal(answer.$metadata.attempts, 2, kind);
  }
});

test("a subscription gets what is put, until the shard ends", async () => {
  const shard = (await shards())[1].ShardId;
  const { StreamARN } = (await client.send(new DescribeStreamSummaryCommand({ StreamName: "orders" })))
    .StreamDescriptionSummary;
  const consumer = await client.send(new RegisterStreamConsumerCommand({ StreamARN, ConsumerName: "lake" }));
  const { EventStream } = await client.send(
    new SubscribeToShardCommand({
      ConsumerARN: consumer.Consumer.ConsumerARN,
      ShardId: shard,
      StartingPosition: { Type: "LATEST" },
    }),
  );
  const last = 2n ** 128n - 1n;
  const got = [];
  let put = 0;
  let children;
  for await (const { SubscribeToShardEvent: event } of EventStream) {
    got.push(...event.Records.map((record) => [record.PartitionKey, Buffer.from(record.Data)]));
    children = event.ChildShards ?? children;
    if (put < 3 && got.length === put) {
      const Records = [{ Data: Buffer.from([0, 255, put]), PartitionKey: `ключ-${put}`, ExplicitHashKey: String(last) }];
      await client.send(new PutRecordsCommand({ StreamName: "orders", Records }));
      put += 1;
    } else if (put === 3 && !children) {
      const NewStartingHashKey = String(last - 1000n);
      await client.send(new SplitShardCommand({ StreamName: "orders", ShardToSplit: shard, NewStartingHashKey }));
      put += 1;
    }
  }
  assert.deepEqual(got, [0, 1, 2].map((i) => [`ключ-${i}`, Buffer.from([0, 255, i])]));
  assert.equal(children.length, 2);
});

test("a closed shard ends with its children", async () => {
  await client.send(
    new SplitShardCommand({ StreamName: "orders", ShardToSplit: "shardId-000000000000", NewStartingHashKey: "1000" }),
  );
  const { records, page } = await readAll(client, "shardId-000000000000");
  assert.equal(records.length, 500);
  assert.equal(page.NextShardIterator ?? null, null);
  assert.deepEqual(page.ChildShards.map((child) => child.ShardId), ["shardId-000000000004", "shardId-000000000005"]);
});
