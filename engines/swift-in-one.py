# OpenStack Swift in one process, with its S3 interface: the proxy and one account, container and object server on one
# disk. For tests only: one copy of everything, credentials on the command line, listings in short pages.
#
#   python3 swift-in-one.py <data folder> <first of four ports> <access key: account:user> <secret>

import os
import sys

import eventlet

eventlet.monkey_patch()

from eventlet import wsgi
from swift.common import utils
from swift.common.ring import RingBuilder

folder, first_port, access_key, secret = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
config = os.path.join(folder, "config")
disks = os.path.join(folder, "disks")
os.makedirs(config, exist_ok=True)
os.makedirs(os.path.join(disks, "d1"), exist_ok=True)


def write(name, text):
    path = os.path.join(config, name)
    with open(path, "w") as file:
        file.write(text)
    return path


write("swift.conf", """
[swift-hash]
swift_hash_path_prefix = coroom
swift_hash_path_suffix = coroom
[storage-policy:0]
name = default
default = yes
""")
utils.set_swift_dir(config)

from swift.common.wsgi import loadapp  # Reads swift.conf when imported.

servers = [(first_port, write("proxy-server.conf", """
[DEFAULT]
swift_dir = %(config)s
[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth slo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
max_bucket_listing = 40
[filter:tempauth]
use = egg:swift#tempauth
user_%(user)s = %(secret)s .admin
[filter:slo]
use = egg:swift#slo
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
""" % {"config": config, "user": access_key.replace(":", "_"), "secret": secret}))]

for offset, kind in enumerate(["account", "container", "object"], start=1):
    port = first_port + offset
    ring = RingBuilder(2, 1, 0)
    ring.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "device": "d1", "weight": 1.0})
    ring.rebalance()
    ring.get_ring().save(os.path.join(config, kind + ".ring.gz"))
    servers.append((port, write(kind + "-server.conf", """
[DEFAULT]
swift_dir = %s
devices = %s
mount_check = false
[pipeline:main]
pipeline = %s-server
[app:%s-server]
use = egg:swift#%s
""" % (config, disks, kind, kind, kind))))


class Silent:
    def write(self, _):
        pass


threads = [eventlet.spawn(wsgi.server, eventlet.listen(("127.0.0.1", port)), loadapp(path), log=Silent()) for port, path in servers]
for thread in threads:
    thread.wait()
