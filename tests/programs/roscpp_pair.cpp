// SPDX-License-Identifier: Apache-2.0
// Nodes of ROS 1 that know nothing of lagometer:
//   publish COUNT BYTES [latch]   to /numbers, one each 5 ms, as soon as somebody subscribes
//   subscribe COUNT [PAUSE_MS]    to /numbers with a queue of 100, or of 1 if each callback takes PAUSE_MS
//   both COUNT                    publishes to itself
// Every string has the same characters.
#include <ros/ros.h>
#include <std_msgs/Empty.h>
#include <std_msgs/String.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace {

std::atomic<int> taken{0};

void publish(ros::Publisher& publisher, ros::Publisher& ticks, int count, size_t bytes) {
  std_msgs::String message;
  message.data.assign(bytes, 'x');
  for (int number = 0; number < count && ros::ok(); ++number) {
    publisher.publish(message);
    ticks.publish(std_msgs::Empty());
    usleep(5'000);
  }
}

void take_tick(const std_msgs::Empty::ConstPtr&) {}

void wait_for(const ros::Publisher& publisher) {
  while (publisher.getNumSubscribers() == 0 && ros::ok()) usleep(1'000);
}

}  // namespace

int main(int count_of_words, char** words) {
  ros::init(count_of_words, words, "pair");
  ros::NodeHandle node;
  const std::string what = words[1];
  const int count = std::atoi(words[2]);
  const int third = count_of_words > 3 ? std::atoi(words[3]) : 0;
  ros::Publisher publisher;
  ros::Publisher ticks;
  if (what != "subscribe") {
    publisher = node.advertise<std_msgs::String>("numbers", 50, count_of_words > 4);
    ticks = node.advertise<std_msgs::Empty>("ticks", 0);
  }
  if (what == "publish") {
    wait_for(publisher);
    wait_for(ticks);
    publish(publisher, ticks, count, static_cast<size_t>(third));
    usleep(300'000);
    return 0;
  }
  ros::Subscriber ticked = node.subscribe("ticks", 10, take_tick);
  const boost::function<void(const std_msgs::String::ConstPtr&)> take = [third](const std_msgs::String::ConstPtr&) {
    ++taken;
    if (third > 0) usleep(static_cast<unsigned>(third) * 1'000);
  };
  ros::Subscriber subscriber = node.subscribe<std_msgs::String>("numbers", third > 0 ? 1 : 100, take);
  ros::AsyncSpinner spinner(1);
  spinner.start();
  if (what == "both") publish(publisher, ticks, count, 100);
  for (int waited = 0; waited < 5'000 && taken < count && ros::ok(); ++waited) usleep(1'000);
  return 0;
}
