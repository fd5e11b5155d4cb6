// The official JavaScript client (`@rhoas/kafka-management-sdk`) against a running server. Told by the
// environment: SERVER, USERNAME, PASSWORD, and COLLEAGUE, another user of the same organization.
// Asserts as it goes, and prints one line of JSON about what it saw.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { SERVER, USERNAME, PASSWORD, COLLEAGUE, PADDOCK_TEST_NODE_MODULES } = process.env;
const require = createRequire(join(PADDOCK_TEST_NODE_MODULES, 'x.js'));
const sdk = require('@rhoas/kafka-management-sdk');

const PATIENCE_MS = 120_000;
const signedIn = await fetch(`${SERVER}/user/login/`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ username: USERNAME, password: PASSWORD }),
});
assert.equal(signedIn.status, 200);
const { token } = await signedIn.json();
const as = (accessToken) => new sdk.Configuration({ basePath: SERVER, accessToken });
const kafkas = new sdk.DefaultApi(as(token));
const seen = { statuses: [], errors: {} };

/** The call must be refused with this status and this code of the catalogue. */
async function refused(call, status, code) {
  const error = await call.then(() => assert.fail(`${code}: it was not refused`), (error) => error);
  assert.equal(error.response?.status, status, error.message);
  assert.ok(sdk.isServiceApiError(error));
  assert.equal(sdk.getErrorCode(error), sdk.APIErrorCodes[`ERROR_${code}`]);
  assert.ok(error.response.data.reason);
  seen.errors[sdk.getErrorCode(error)] = status;
}

/** Looks until it is so. */
async function until(what, look) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end;) {
    if (await look()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`never: ${what}`);
}

async function untilReady(id) {
  await until(`${id} is ready`, async () => {
    const { status } = (await kafkas.getKafkaById(id)).data;
    if (seen.statuses.at(-1) !== status) seen.statuses.push(status);
    assert.notEqual(status, 'failed');
    return status === 'ready';
  });
}

async function untilGone(id) {
  await until(`${id} is gone`, () => kafkas.getKafkaById(id).then(
    ({ data }) => assert.match(data.status, /^(deprovision|deleting)$/),
    (error) => error.response?.status === 404,
  ));
}

/** The names of those that are found. */
async function found(search, orderBy, page, size) {
  return (await kafkas.getKafkas(page, size, orderBy, search)).data.items.map(({ name }) => name);
}

// What there is to choose from.
const clouds = (await kafkas.getCloudProviders()).data;
assert.equal(clouds.kind, 'CloudProviderList');
assert.ok(clouds.items.some(({ id, enabled }) => id === 'aws' && enabled));
const regions = (await kafkas.getCloudProviderRegions('local')).data;
assert.deepEqual(regions.items.map(({ id }) => id), ['local']);
const sizes = regions.items[0].capacity.find(({ instance_type: type }) => type === 'standard');
assert.ok(sizes.available_sizes.includes('x1'));
const types = (await kafkas.getInstanceTypesByCloudProviderAndRegion('local', 'local')).data;
seen.types = types.instance_types.map(({ id }) => id);
assert.equal(types.instance_types[1].sizes[0].max_data_retention_size.bytes, 1000 * 2 ** 30);

// Two are made, and get ready.
const place = { cloud_provider: 'local', region: 'local' };
const made = await kafkas.createKafka(true, { name: 'first-one', plan: 'standard.x1', ...place });
assert.equal(made.status, 202);
assert.equal(made.data.kind, 'Kafka');
assert.equal(made.data.multi_az, true);
const { id } = made.data;
await untilReady(id);
const second = (await kafkas.createKafka(true, { name: 'second-two', ...place })).data.id;
await untilReady(second);
const ready = (await kafkas.getKafkaById(id)).data;
assert.equal(ready.href, `/api/kafkas_mgmt/v1/kafkas/${id}`);
assert.equal(ready.owner, USERNAME);
assert.match(ready.bootstrap_server_host, /^first-one-.*:443$/);
assert.equal(Object.values(ready).includes(null), false);

// They are listed, searched, ordered and paged.
const all = (await kafkas.getKafkas()).data;
assert.deepEqual([all.kind, all.page, all.size, all.total], ['KafkaRequestList', 1, 2, 2]);
assert.deepEqual(await found('name = second-two'), ['second-two']);
assert.deepEqual(await found('name like %one%'), ['first-one']);
assert.deepEqual(await found(`name like %o% and owner = ${USERNAME}`), ['first-one', 'second-two']);
assert.deepEqual(await found("status <> 'ready' or region = nowhere"), []);
assert.deepEqual(await found(undefined, 'name desc'), ['second-two', 'first-one']);
assert.deepEqual(await found(undefined, 'name asc', '2', '1'), ['second-two']);
assert.deepEqual(await found(undefined, 'name asc', '3', '1'), []);

// What may be changed.
const off = (await kafkas.updateKafkaById(id, { reauthentication_enabled: false })).data;
assert.equal(off.reauthentication_enabled, false);
const given = (await kafkas.updateKafkaById(id, { owner: COLLEAGUE })).data;
assert.equal(given.owner, COLLEAGUE);
assert.equal((await kafkas.getKafkaById(id)).data.reauthentication_enabled, false);

// What is refused.
const nobody = new sdk.DefaultApi(as('x'));
await refused(kafkas.createKafka(true, { name: 'first-one', ...place }), 409, 36);
await refused(kafkas.createKafka(true, { name: 'First_One', ...place }), 400, 32);
await refused(kafkas.createKafka(false, { name: 'third' }), 400, 103);
await refused(kafkas.createKafka(true, { name: 'third', cloud_provider: 'moon' }), 400, 30);
await refused(kafkas.getKafkaById('c0000000000000000000'), 404, 7);
await refused(kafkas.deleteKafkaById(id, false), 400, 103);
await refused(kafkas.getKafkas(undefined, undefined, undefined, 'name ='), 400, 23);
await refused(nobody.getKafkas(), 401, 15);
const catalogue = (await new sdk.ErrorsApi(as()).getErrors()).data;
assert.ok(catalogue.items.some(({ code }) => code === 'KAFKAS-MGMT-36'));

// A program signs in with a service account of its own.
const accounts = new sdk.SecurityApi(as(token));
const { token_url: tokenUrl } = (await accounts.getSsoProviders()).data;
async function tokenOf({ client_id, client_secret }) {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret });
  const answer = await fetch(tokenUrl, { method: 'POST', body });
  return (await answer.json()).access_token;
}
const robot = (await accounts.createServiceAccount({ name: 'robot', description: 'It counts.' })).data;
assert.equal(robot.created_by, USERNAME);
assert.equal((await accounts.getServiceAccountById(robot.id)).data.client_secret, undefined);
assert.deepEqual((await accounts.getServiceAccounts(robot.client_id)).data.items.map((one) => one.id), [robot.id]);
const counted = (await new sdk.DefaultApi(as(await tokenOf(robot))).getKafkas()).data;
assert.equal(counted.total, 2);
const renewed = (await accounts.resetServiceAccountCreds(robot.id)).data;
assert.notEqual(renewed.client_secret, robot.client_secret);
assert.equal(await tokenOf(robot), undefined);
assert.ok(await tokenOf(renewed));
assert.equal((await accounts.deleteServiceAccountById(robot.id)).status, 204);
await refused(accounts.getServiceAccountById(robot.id), 404, 113);
await refused(accounts.createServiceAccount({ name: 'Not_A_Name' }), 400, 38);
assert.equal(await tokenOf(renewed), undefined);

// They go away, and their names are free again.
for (const each of [id, second]) {
  assert.equal((await kafkas.deleteKafkaById(each, true)).status, 202);
}
await untilGone(id);
await untilGone(second);
await refused(kafkas.getKafkaById(id), 404, 7);
assert.equal((await kafkas.getKafkas()).data.total, 0);
console.log(JSON.stringify(seen));
