// The official JavaScript client (`@rhoas/kafka-management-sdk`) against a running server. Environment
// variables: SERVER, USERNAME, PASSWORD, and COLLEAGUE, another user of the same organization.
// Prints the observed values as one line of JSON.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { SERVER, USERNAME, PASSWORD, COLLEAGUE, PADDOCK_TEST_NODE_MODULES } = process.env;
const require = createRequire(join(PADDOCK_TEST_NODE_MODULES, 'x.js'));
const sdk = require('@rhoas/kafka-management-sdk');

const TIMEOUT_MS = 120_000;
const login = await fetch(`${SERVER}/user/login/`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ username: USERNAME, password: PASSWORD }),
});
assert.equal(login.status, 200);
const { token } = await login.json();
const as = (accessToken) => new sdk.Configuration({ basePath: SERVER, accessToken });
const kafkas = new sdk.DefaultApi(as(token));
const observed = { statuses: [], errors: {} };

/** Asserts that the call is rejected with this status and error code. */
async function rejected(call, status, code) {
  const error = await call.then(() => assert.fail(`${code}: was not rejected`), (error) => error);
  assert.equal(error.response?.status, status, error.message);
  assert.ok(sdk.isServiceApiError(error));
  assert.equal(sdk.getErrorCode(error), sdk.APIErrorCodes[`ERROR_${code}`]);
  assert.ok(error.response.data.reason);
  observed.errors[sdk.getErrorCode(error)] = status;
}

/** Polls until the check succeeds. */
async function until(what, check) {
  for (const end = Date.now() + TIMEOUT_MS; Date.now() < end;) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`never: ${what}`);
}

async function untilReady(id) {
  await until(`${id} is ready`, async () => {
    const { status } = (await kafkas.getKafkaById(id)).data;
    if (observed.statuses.at(-1) !== status) observed.statuses.push(status);
    assert.notEqual(status, 'failed');
    return status === 'ready';
  });
}

async function untilDeleted(id) {
  await until(`${id} is deleted`, () => kafkas.getKafkaById(id).then(
    ({ data }) => assert.match(data.status, /^(deprovision|deleting)$/),
    (error) => error.response?.status === 404,
  ));
}

/** Names of matching instances. */
async function found(search, orderBy, page, size) {
  return (await kafkas.getKafkas(page, size, orderBy, search)).data.items.map(({ name }) => name);
}

// Cloud providers, regions and instance types.
const clouds = (await kafkas.getCloudProviders()).data;
assert.equal(clouds.kind, 'CloudProviderList');
assert.ok(clouds.items.some(({ id, enabled }) => id === 'aws' && enabled));
const regions = (await kafkas.getCloudProviderRegions('local')).data;
assert.deepEqual(regions.items.map(({ id }) => id), ['local']);
const sizes = regions.items[0].capacity.find(({ instance_type: type }) => type === 'standard');
assert.ok(sizes.available_sizes.includes('x1'));
const types = (await kafkas.getInstanceTypesByCloudProviderAndRegion('local', 'local')).data;
observed.types = types.instance_types.map(({ id }) => id);
assert.equal(types.instance_types[1].sizes[0].max_data_retention_size.bytes, 1000 * 2 ** 30);

// Creates two instances and waits until they are ready.
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

// Lists, searches, sorts and pages.
const all = (await kafkas.getKafkas()).data;
assert.deepEqual([all.kind, all.page, all.size, all.total], ['KafkaRequestList', 1, 2, 2]);
assert.deepEqual(await found('name = second-two'), ['second-two']);
assert.deepEqual(await found('name like %one%'), ['first-one']);
assert.deepEqual(await found(`name like %o% and owner = ${USERNAME}`), ['first-one', 'second-two']);
assert.deepEqual(await found("status <> 'ready' or region = nowhere"), []);
assert.deepEqual(await found(undefined, 'name desc'), ['second-two', 'first-one']);
assert.deepEqual(await found(undefined, 'name asc', '2', '1'), ['second-two']);
assert.deepEqual(await found(undefined, 'name asc', '3', '1'), []);

// Updates.
const off = (await kafkas.updateKafkaById(id, { reauthentication_enabled: false })).data;
assert.equal(off.reauthentication_enabled, false);
const given = (await kafkas.updateKafkaById(id, { owner: COLLEAGUE })).data;
assert.equal(given.owner, COLLEAGUE);
assert.equal((await kafkas.getKafkaById(id)).data.reauthentication_enabled, false);

// Rejected requests.
const nobody = new sdk.DefaultApi(as('x'));
await rejected(kafkas.createKafka(true, { name: 'first-one', ...place }), 409, 36);
await rejected(kafkas.createKafka(true, { name: 'First_One', ...place }), 400, 32);
await rejected(kafkas.createKafka(false, { name: 'third' }), 400, 103);
await rejected(kafkas.createKafka(true, { name: 'third', cloud_provider: 'moon' }), 400, 30);
await rejected(kafkas.getKafkaById('c0000000000000000000'), 404, 7);
await rejected(kafkas.deleteKafkaById(id, false), 400, 103);
await rejected(kafkas.getKafkas(undefined, undefined, undefined, 'name ='), 400, 23);
await rejected(nobody.getKafkas(), 401, 15);
const catalogue = (await new sdk.ErrorsApi(as()).getErrors()).data;
assert.ok(catalogue.items.some(({ code }) => code === 'KAFKAS-MGMT-36'));

// Service account login.
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
await rejected(accounts.getServiceAccountById(robot.id), 404, 113);
await rejected(accounts.createServiceAccount({ name: 'Not_A_Name' }), 400, 38);
assert.equal(await tokenOf(renewed), undefined);

// Deletes the instances, which frees their names.
for (const each of [id, second]) {
  assert.equal((await kafkas.deleteKafkaById(each, true)).status, 202);
}
await untilDeleted(id);
await untilDeleted(second);
await rejected(kafkas.getKafkaById(id), 404, 7);
assert.equal((await kafkas.getKafkas()).data.total, 0);
console.log(JSON.stringify(observed));
