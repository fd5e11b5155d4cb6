"""The official Python client (`rhoas-sdks`) against a running server.

Environment variables: SERVER, USERNAME, PASSWORD, and COLLEAGUE, another user of the same organization.
Prints the observed values as one line of JSON.
"""

import json
import os
import re
import time
import urllib.request

import rhoas_kafka_mgmt_sdk as sdk
from rhoas_kafka_mgmt_sdk.api.default_api import DefaultApi
from rhoas_kafka_mgmt_sdk.api.errors_api import ErrorsApi
from rhoas_kafka_mgmt_sdk.api.security_api import SecurityApi
from rhoas_kafka_mgmt_sdk.model.kafka_request_payload import KafkaRequestPayload
from rhoas_kafka_mgmt_sdk.model.kafka_update_request import KafkaUpdateRequest
from rhoas_kafka_mgmt_sdk.model.service_account_request import ServiceAccountRequest

SERVER, USERNAME, PASSWORD, COLLEAGUE = (
    os.environ[name] for name in ("SERVER", "USERNAME", "PASSWORD", "COLLEAGUE")
)
TIMEOUT_S = 120
observed = {"statuses": [], "errors": {}}


def log_in():
    body = json.dumps({"username": USERNAME, "password": PASSWORD}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{SERVER}/user/login/", body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["token"]


def client(token):
    return sdk.ApiClient(sdk.Configuration(host=SERVER, access_token=token))


def rejected(call, status, code):
    """Asserts that the call is rejected with this status and error code."""
    try:
        call()
    except sdk.ApiException as error:
        problem = json.loads(error.body)
        assert (error.status, problem["code"]) == (status, f"KAFKAS-MGMT-{code}"), (status, code, problem)
        assert problem["kind"] == "Error" and problem["reason"], problem
        observed["errors"][problem["code"]] = status
    else:
        raise AssertionError(f"{code}: was not rejected")


def until(what, check):
    """Polls until the check succeeds."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if check():
            return
        time.sleep(0.02)
    raise AssertionError(f"never: {what}")


def is_ready(kafka_id):
    status = kafkas.get_kafka_by_id(kafka_id).status
    if observed["statuses"][-1:] != [status]:
        observed["statuses"].append(status)
    assert status != "failed", status
    return status == "ready"


def is_deleted(kafka_id):
    try:
        assert kafkas.get_kafka_by_id(kafka_id).status in ("deprovision", "deleting")
    except sdk.exceptions.NotFoundException:
        return True
    return False


def create(name, **more):
    return kafkas.create_kafka(
        True, KafkaRequestPayload(name=name, cloud_provider="local", region="local", **more)
    )


def found(**query):
    """Names of matching instances."""
    return [item["name"] for item in kafkas.get_kafkas(**query)["items"]]


token = log_in()
kafkas = DefaultApi(client(token))

# Cloud providers, regions and instance types.
clouds = kafkas.get_cloud_providers()
assert clouds.kind == "CloudProviderList", clouds
assert any(cloud["id"] == "aws" and cloud["enabled"] for cloud in clouds.items), clouds
regions = kafkas.get_cloud_provider_regions("local").items
assert [region["id"] for region in regions] == ["local"], regions
types = kafkas.get_instance_types_by_cloud_provider_and_region("local", "local")
observed["types"] = [each["id"] for each in types.instance_types]

# Creates two instances and waits until they are ready.
made = create("first-one", plan="standard.x1")
assert (made.kind, made.name, made.multi_az) == ("Kafka", "first-one", True), made
until("the first is ready", lambda: is_ready(made.id))
second = create("second-two")
until("the second is ready", lambda: is_ready(second.id))
ready = kafkas.get_kafka_by_id(made.id)
assert ready.href == f"/api/kafkas_mgmt/v1/kafkas/{made.id}" and ready.owner == USERNAME, ready
assert re.match(r"first-one-.*:443$", ready.bootstrap_server_host), ready

# Lists, searches, sorts and pages.
everything = kafkas.get_kafkas()
assert (everything.kind, everything.page, everything.size, everything.total) == ("KafkaRequestList", 1, 2, 2)
assert found(search="name = second-two") == ["second-two"]
assert found(search="name like %one%") == ["first-one"]
assert found(search=f"name like %o% and owner = {USERNAME}") == ["first-one", "second-two"]
assert found(order_by="name desc") == ["second-two", "first-one"]
assert found(order_by="name asc", page="2", size="1") == ["second-two"]

# Updates.
off = kafkas.update_kafka_by_id(made.id, KafkaUpdateRequest(reauthentication_enabled=False))
assert off.reauthentication_enabled is False, off
given = kafkas.update_kafka_by_id(made.id, KafkaUpdateRequest(owner=COLLEAGUE))
assert (given.owner, given.reauthentication_enabled) == (COLLEAGUE, False), given

# Rejected requests.
rejected(lambda: create("first-one"), 409, 36)
rejected(lambda: create("First_One"), 400, 32)
rejected(lambda: kafkas.create_kafka(False, KafkaRequestPayload(name="third")), 400, 103)
rejected(lambda: kafkas.get_kafka_by_id("c0000000000000000000"), 404, 7)
rejected(lambda: kafkas.delete_kafka_by_id(made.id, False), 400, 103)
rejected(lambda: kafkas.get_kafkas(search="name ="), 400, 23)
rejected(DefaultApi(client("x")).get_kafkas, 401, 15)
catalogue = ErrorsApi(client("x")).get_errors()
assert any(error["code"] == "KAFKAS-MGMT-36" for error in catalogue.items), catalogue

# Service account: create, reset, delete.
accounts = SecurityApi(client(token))
assert accounts.get_sso_providers().token_url.startswith(SERVER)
robot = accounts.create_service_account(ServiceAccountRequest(name="robot", description="It counts."))
assert robot.client_secret and robot.created_by == USERNAME, robot
assert [one["id"] for one in accounts.get_service_accounts().items] == [robot.id]
assert accounts.get_service_account_by_id(robot.id).client_id == robot.client_id
assert accounts.reset_service_account_creds(robot.id).client_secret != robot.client_secret
assert accounts.delete_service_account_by_id(robot.id, _preload_content=False).status == 204
rejected(lambda: accounts.get_service_account_by_id(robot.id), 404, 113)

# Deletes the instances. The response has no body, which the SDK would try to parse.
for kafka_id in (made.id, second.id):
    assert kafkas.delete_kafka_by_id(kafka_id, True, _preload_content=False).status == 202
for kafka_id in (made.id, second.id):
    until("deleted", lambda: is_deleted(kafka_id))
rejected(lambda: kafkas.get_kafka_by_id(made.id), 404, 7)
assert kafkas.get_kafkas().total == 0
print(json.dumps(observed))
