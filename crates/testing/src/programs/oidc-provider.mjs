// A real OpenID provider for tests, on loopback: `node oidc-provider.mjs '{"port": 0, …}'`.
// Prints its port when it is ready, and exits when its standard input closes, so that it never
// outlives the test. `issuer` is its URL for users, if that is not its own address.
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const modules = process.env.PADDOCK_TEST_NODE_MODULES;
const { default: Provider } = await import(pathToFileURL(join(modules, 'oidc-provider/lib/index.js')));
const options = JSON.parse(process.argv[2]);

process.stdin.on('end', () => process.exit(0)).resume();

const stored = new Map();

// In-memory storage of the provider; clients can be counted.
class Store {
  constructor(model) { this.model = model; }
  key(id) { return `${this.model}:${id}`; }
  async upsert(id, payload) { stored.set(this.key(id), payload); }
  async find(id) { return stored.get(this.key(id)); }
  async findByUid() { return undefined; }
  async findByUserCode() { return undefined; }
  async consume(id) { stored.get(this.key(id)).consumed = 1; }
  async destroy(id) { stored.delete(this.key(id)); }
  async revokeByGrantId() {}
}

// Through PEM: exporting a new key as JWK sometimes hangs in Node 20.
const pem = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
};
const key = (alg, type, settings) => {
  const { privateKey } = generateKeyPairSync(type, { ...settings, ...pem });
  const jwk = createPrivateKey(privateKey).export({ format: 'jwk' });
  return { ...jwk, kid: `${alg}-${options.generation}`, alg, use: 'sig' };
};
const keys = [
  key('RS256', 'rsa', { modulusLength: 2048 }),
  key('PS256', 'rsa', { modulusLength: 2048 }),
  key('ES256', 'ec', { namedCurve: 'P-256' }),
  key('EdDSA', 'ed25519', {}),
];

const server = http.createServer();
server.listen(options.port, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(options.issuer ?? `http://127.0.0.1:${port}`, {
    adapter: Store,
    jwks: { keys },
    extraTokenClaims: () => options.claims,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true, initialAccessToken: 'initial-token' },
      registrationManagement: {
        enabled: true, rotateRegistrationAccessToken: options.rotates_tokens,
      },
      // A resource `urn:api:ES256` yields tokens with that audience, signed with that algorithm.
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:api:RS256',
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: '', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 300,
          jwt: { sign: { alg: resource.split(':').at(-1) } },
        }),
      },
    },
  });
  const handle = provider.callback();
  server.on('request', (request, response) => {
    if (request.url !== '/test/clients') return handle(request, response);
    const clients = [...stored.keys()].filter((name) => name.startsWith('Client:'));
    if (request.method === 'DELETE') clients.forEach((name) => stored.delete(name));
    response.end(JSON.stringify(clients.map((name) => name.slice('Client:'.length))));
  });
  console.log(port);
});
